"""Every file that crossperf writes carries the number of its format, and one file of each format stays readable."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crossperf import campaign, evaluation, model, records
from crossperf.adaptation.result import Transfer
from crossperf.campaign import log
from crossperf.errors import CrossperfError, RunsTableError
from crossperf.model import store
from crossperf.platforms import registry
from crossperf.runs import table
from crossperf.schedule.slurm import setup, site
from crossperf.schedule.slurm import table as slurm_table
from tests.campaign.stand_in import prepare, visit
from tests.hostile.targets import BY_NAME
from tests.schedule.slurm.conftest import TABLE, install
from tests.schedule.slurm.lua import LUAS
from tests.schedule.slurm.lua import place as lua_place

TODAY = Path(__file__).parent / "data" / "formats" / "3"
RUNS = ("runs.jsonl", "runs-without-number.jsonl", "runs.csv", "runs.parquet")


def keys(value: Any, depth: int = 2) -> Any:
    """Return the names in a document, some levels deep; entries of free text below them do not count."""
    if isinstance(value, dict) and depth:
        return {name: keys(part, depth - 1) for name, part in value.items()}
    return keys(value[0], depth) if isinstance(value, list) and value and isinstance(value[0], dict) else None


@pytest.mark.parametrize("name", ["transfer", "platforms", "predictions", "evaluation"])
def test_what_is_written_today_has_the_entries_of_the_file_that_is_kept(name: str) -> None:
    kept, written = json.loads((TODAY / f"{name}.json").read_text()), json.loads(BY_NAME[name].sound())
    assert keys(written) == keys(kept), "another format: give it a number of its own, and keep a file of it"
    assert written["format"] == kept["format"]


def test_a_model_written_today_has_the_entries_of_the_folder_that_is_kept(tmp_path: Path) -> None:
    model.load(TODAY / "ridge").save(tmp_path / "again")
    kept, written = (
        json.loads((folder / "model.json").read_text()) for folder in (TODAY / "ridge", tmp_path / "again")
    )
    assert written == kept


def test_the_model_that_is_kept_answers_as_it_did() -> None:
    loaded = model.load(TODAY / "ridge")
    answers_np = np.load(TODAY / "ridge-answers.npy")
    np.testing.assert_allclose(loaded.fitted.predict(loaded.features), answers_np, rtol=1e-9)


def test_the_results_that_are_kept_say_what_they_did() -> None:
    scores = evaluation.read(TODAY / "evaluation.json").scores
    assert (
        scores["ridge"].typical_factor
        == json.loads((TODAY / "evaluation.json").read_text())["scores"]["models"]["ridge"]["mean"]["typical_factor"]
    )
    assert Transfer.from_json(json.loads((TODAY / "transfer.json").read_text())).scores[0].column == 1.5
    assert registry.read(TODAY / "platforms.json")[0].facts.more == {"price_per_hour": 1.2}
    assert records.read_predictions(TODAY / "predictions.json")[0].fastest == "h200"


@pytest.mark.parametrize("name", RUNS)
def test_the_runs_that_are_kept_are_the_same_in_every_format(name: str) -> None:
    read = table.read(TODAY / name)
    assert read.fingerprint == table.read(TODAY / "runs.jsonl").fingerprint
    assert (len(read), read.n_failed, read.counters[0]) == (9, 1, "counter.instructions")
    assert records.RUNS_FORMAT not in read.frame.columns
    assert all(records.RUNS_FORMAT not in run.metadata for run in read.runs())


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "jsonl.gz", "csv.gz"])
def test_runs_carry_the_number_of_their_format_and_a_newer_one_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"runs.{kind}"
    table.read(TODAY / "runs.jsonl").write(path)
    frame = {"jsonl": pl.read_ndjson, "csv": pl.read_csv, "parquet": pl.read_parquet}[kind.removesuffix(".gz")](path)
    assert frame[records.RUNS_FORMAT].unique().to_list() == [records.FORMAT]
    with pytest.raises(RunsTableError, match=r"found format '?9'?, expected runs of format 1\. Upgrade crossperf"):
        table.from_frame(frame.with_columns(pl.lit(9).alias(records.RUNS_FORMAT)))


def test_a_newer_format_of_each_document_is_refused_in_one_sentence(tmp_path: Path) -> None:
    readers = {
        "evaluation": evaluation.read,
        "platforms": registry.read,
        "predictions": records.read_predictions,
        "transfer": lambda path: Transfer.from_json(json.loads(path.read_text())),
    }
    for name, read in readers.items():
        facts = json.loads((TODAY / f"{name}.json").read_text())
        (tmp_path / name).write_text(json.dumps({**facts, "format": 99}))
        with pytest.raises(CrossperfError, match=r"found format 99, expected .*\. Upgrade crossperf\.$"):
            read(tmp_path / name)
    assert json.loads((TODAY / "ridge" / "model.json").read_text())["format"] == store.FORMAT


def test_a_site_file_that_is_kept_reads_and_is_written_the_same() -> None:
    kept = site.read(TODAY / "site.json")
    assert [(place.partition, place.platform) for place in kept.places] == [("cpu", "epyc-2"), ("gpu", "h200")]
    assert kept.to_json() == json.loads((TODAY / "site.json").read_text())


def test_a_table_of_the_controller_that_is_kept_reads_and_is_written_the_same() -> None:
    kept = slurm_table.read(TODAY / "slurm-table")
    assert (kept.default, kept.policy, kept.made) == ("cpu", "fastest", 5)
    assert {key: kept.row(key) for key in TABLE.rows} == TABLE.rows
    assert replace(TABLE, made=5).to_bytes() == (TODAY / "slurm-table").read_bytes(), "another format: a new VERSION"


@pytest.mark.parametrize("lua", LUAS)
def test_a_table_of_the_controller_that_is_kept_places_jobs_in_every_lua(lua: str, tmp_path: Path) -> None:
    install(tmp_path)
    shutil.copy(TODAY / "slurm-table", tmp_path / setup.TABLE)
    (placed,) = lua_place(lua, tmp_path, {"name": "lmp", "user_name": "ann"})
    assert placed["partition"] == "big", placed


def test_the_log_of_a_campaign_that_is_kept_tells_what_it_did() -> None:
    folder = TODAY / "campaign"
    (begun,) = log.rounds(folder)
    assert begun.platforms == ("one", "two")
    visits = {(visit.platform, visit.workload): visit for visit in log.timed(folder)}
    assert visits["one", "quick"].seconds == (0.01, 0.0101, 0.0102)
    assert (visits["two", "quick"].passes, visits["two", "quick"].checksum) == (2, 1.5)
    assert visits["two", "refuse"].error == "no such size"
    assert log.machines(folder)["one"].cores == 2
    (counted,) = log.counted(folder)
    assert (counted.work.line, counted.events, counted.program) == ("quick n=1", {"Ir": 5.0}, log.Copies(1.0, 2.0))


def test_a_campaign_writes_the_entries_of_the_log_that_is_kept(tmp_path: Path) -> None:
    spec = campaign.read(prepare(tmp_path, "[quick]\nn = [1]\n[refuse]\nn = [1]\n"))
    visit(spec, tmp_path)

    def shapes(path: Path) -> set[tuple[str, ...]]:
        return {tuple(sorted(json.loads(line).keys())) for line in path.read_text().splitlines()}

    kept, written = shapes(TODAY / "campaign" / log.TIMES), shapes(tmp_path / log.TIMES)
    assert written == kept, "another format: give it a number of its own, and keep a file of it"


def test_a_newer_format_of_a_site_a_table_and_a_log_is_refused_in_one_sentence(tmp_path: Path) -> None:
    facts = json.loads((TODAY / "site.json").read_text())
    (tmp_path / "site.json").write_text(json.dumps({**facts, "format": 99}))
    data = (TODAY / "slurm-table").read_bytes()
    (tmp_path / "table").write_bytes(data.replace(b"crossperf-table\t2\t", b"crossperf-table\t9\t"))
    line = json.loads((TODAY / "campaign" / log.TIMES).read_text().splitlines()[-1])
    (tmp_path / log.TIMES).write_text(json.dumps({**line, "format": 99}) + "\n")
    with pytest.raises(CrossperfError, match=r"found format 99, expected 1\. Upgrade crossperf"):
        site.read(tmp_path / "site.json")
    with pytest.raises(CrossperfError, match=r"version"):
        slurm_table.read(tmp_path / "table")
    with pytest.raises(CrossperfError, match=r"found a line of format 99, expected 1\. Upgrade crossperf"):
        log.timed(tmp_path)
