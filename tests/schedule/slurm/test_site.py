"""Which platform stands behind each partition: from a line, a JSON file or a CSV."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crossperf.schedule.slurm.site import Place, Site, SiteError


def test_a_line_a_json_file_and_a_csv_say_the_same(tmp_path: Path) -> None:
    line = Site.of("cpu=epyc-2, gpu=h200", "gpu")
    (tmp_path / "p.json").write_text(json.dumps(line.to_json()))
    (tmp_path / "p.csv").write_text("partition,platform\ncpu,epyc-2\ngpu,h200\n")
    assert Site.of(str(tmp_path / "p.json")) == line == Site.of(str(tmp_path / "p.csv"), "gpu")
    assert line.reference == "h200"
    assert line.platform("none") is None


def test_the_first_partition_is_the_default_unless_one_is_named() -> None:
    assert Site.of("cpu=a,gpu=b").default == "cpu"


def test_a_price_is_kept(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("partition,platform,price_per_node_hour\ncpu,epyc-2,0.5\n")
    assert Site.of(str(tmp_path / "p.csv")).places == (Place("cpu", "epyc-2", 0.5),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cpu", "cannot be read"),
        ("cpu=", "partition 'cpu' with platform ''"),
        ("cpu=a,cpu=b", "each partition once"),
        ("cpu=a,gpu", "expected partition=platform"),
        (",=", "partition '' with platform ''"),
    ],
)
def test_what_is_no_mapping_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(SiteError, match=words):
        Site.of(text)


@pytest.mark.parametrize("text", ["", "[]", '{"partitions": 3}', '{"partitions": ["cpu"]}', "{"])
def test_a_file_that_is_no_mapping_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(SiteError, match=r"p\.json"):
        Site.of(str(tmp_path / "p.json"))


def test_a_default_that_is_not_mapped_and_a_price_below_zero_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="did you mean 'cpu'"):
        Site.of("cpu=a", "cpus")
    (tmp_path / "p.csv").write_text("partition,platform,price_per_node_hour\ncpu,epyc-2,-1\n")
    with pytest.raises(SiteError, match="expected 0 or more"):
        Site.of(str(tmp_path / "p.csv"))


def test_a_partition_names_the_gres_that_jobs_get_there(tmp_path: Path) -> None:
    site = Site.of("cpu=epyc-2,gpu=h200:gres/gpu:a100:2")
    assert [(place.platform, place.gres) for place in site.places] == [("epyc-2", ""), ("h200", "gpu:a100:2")]
    path = tmp_path / "site.json"
    path.write_text(json.dumps(site.to_json()))
    assert Site.of(str(path)) == site
    (tmp_path / "site.csv").write_text("partition,platform,gres\ncpu,epyc-2,\ngpu,h200,gres/gpu:1\n")
    assert [place.gres for place in Site.of(str(tmp_path / "site.csv")).places] == ["", "gpu:1"]
    with pytest.raises(SiteError, match="found the gres 'gpu 1', expected one such as gpu:1"):
        Site.of("gpu=h200:gres/gpu 1")


def test_the_site_of_a_campaign_has_the_same_partitions(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text('[platforms.epyc]\npartition = "cpu"\n[platforms.h200]\npartition = "gpu"\ngres = "gpu:1"\n')
    assert Site.of(str(path)) == Site.of("cpu=epyc,gpu=h200:gres/gpu:1")
    path.write_text('[platforms.epyc]\npartition = "cpu"\n[platforms.epic]\npartition = "cpu"\n')
    with pytest.raises(SiteError, match="expected each partition once"):
        Site.of(str(path))
