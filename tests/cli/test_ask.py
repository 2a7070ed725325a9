"""`crossperf ask` as a person uses it: with the model that ships, on programs of this machine and on known runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from crossperf import cli
from crossperf.datasets import testbed
from crossperf.runs.table import from_frame
from tests.cli.test_cli import Done

Ask = Callable[..., Done]


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ask:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSPERF_PLATFORMS", str(tmp_path / "platforms.json"))

    def run(*arguments: str | Path) -> Done:
        capfd.readouterr()
        with pytest.raises(SystemExit) as leaving:
            cli.main([str(argument) for argument in ("ask", *arguments)])
        code = leaving.value.code
        return Done(code if isinstance(code, int) else 0, *capfd.readouterr())

    return run


@pytest.fixture(scope="module")
def known_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the testbed on a CPU that does not say where else there is a version of it."""
    frame = testbed.load().frame.filter((pl.col("app") == "lennard_jones") & (pl.col("platform") == "epyc-1t"))
    run = frame.filter(pl.col("input") == frame["input"].unique().sort()[0])
    path = tmp_path_factory.mktemp("ask") / "run.jsonl"
    from_frame(run.drop("runnable", strict=False)).write(path)
    return path


def facts_of(ask: Ask, *arguments: str | Path) -> dict[str, object]:
    done = ask("--json", "-", *arguments)
    assert done.status == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_known_run_is_answered_with_the_model_that_ships(ask: Ask, known_run: Path) -> None:
    done = ask("--from", known_run)
    assert done.status == 0, done.stderr
    assert "here is epyc-1t" in done.stdout
    assert "Fastest is" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_cpu_program_goes_to_a_gpu_only_where_somebody_says_that_it_can(ask: Ask, known_run: Path) -> None:
    assert "h200" not in facts_of(ask, "--from", known_run)["order"]  # type: ignore[operator]
    assert "h200" not in facts_of(ask, "--no-gpu", "--from", known_run)["order"]  # type: ignore[operator]
    assert "h200" in facts_of(ask, "--can", "gpu", "--from", known_run)["order"]  # type: ignore[operator]
    assert "h200: no version known" in ask("--from", known_run).stdout
    assert "h200: cannot run" in ask("--no-gpu", "--from", known_run).stdout


def test_only_the_platforms_asked_for_are_told_of(ask: Ask, known_run: Path) -> None:
    done = ask("--platforms", "xeon-1t,h200", "--from", known_run)
    assert "xeon-16t" not in done.stdout
    facts = facts_of(ask, "--platforms", "xeon-1t,h200", "--from", known_run)
    assert sorted(facts["order"]) == ["epyc-1t", "xeon-1t"]  # type: ignore[call-overload]
    assert sum(facts["prediction"]["chance_fastest"].values()) == pytest.approx(1.0)  # type: ignore[index]


def test_a_price_that_the_user_keeps_makes_a_cost(ask: Ask, known_run: Path, tmp_path: Path) -> None:
    entry = {"name": "xeon-1t", "platform_class": "cpu", "facts": {"price_per_hour": 2.0}}
    (tmp_path / "platforms.json").write_text(json.dumps({"format": 1, "platforms": [entry]}))
    facts = facts_of(ask, "--from", known_run)
    seconds = facts["prediction"]["seconds"]["xeon-1t"]  # type: ignore[index]
    assert facts["cost"] == {"xeon-1t": pytest.approx(seconds * 2.0 / 3600.0)}
    facts = facts_of(ask, "--price", "xeon-1t=3", "--from", known_run)
    assert facts["cost"] == {"xeon-1t": pytest.approx(seconds * 3.0 / 3600.0)}


def test_a_program_is_run_here_and_what_it_prints_is_not_shown(ask: Ask, tmp_path: Path) -> None:
    script = tmp_path / "work.sh"
    script.write_text("#!/bin/sh\necho its own words\n")
    script.chmod(0o755)
    done = ask("--quick", "--repeats", "2", "--json", "facts.json", "--", script)
    assert done.status == 0, done.stderr
    assert "its own words" not in done.stdout + done.stderr
    here = json.loads((tmp_path / "facts.json").read_text())["here"]
    assert here["threads"] == 1
    assert here["platform"].endswith("-1t")
    assert here["runtime_s"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no command was given"),
        (("--", "./nothing-of-this-name"), "no such file"),
        (("--quick", "--", "false"), "false: failed (exit status 1)"),
        (("--platforms", "h20", "--", "true"), "did you mean 'h200'?"),
        (("--here", "epyc", "--", "true"), "--here: found 'epyc'"),
        (("--can", "gpu", "--no-gpu", "--", "true"), "--no-gpu"),
        (("--can", "tpu", "--quick", "--repeats", "1", "--", "true"), "'tpu'"),
        (("--model", "nowhere", "--", "true"), "expected a model folder"),
        (("--from", "nowhere.csv"), "no such file"),
        (("--price", "xeon-1t=free", "--", "true"), "--price: found 'xeon-1t=free'"),
    ],
)
def test_what_goes_wrong_is_one_sentence(ask: Ask, arguments: tuple[str, ...], words: str) -> None:
    done = ask(*arguments)
    assert done.status == 1
    assert done.stdout == ""
    *talk, error = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert words in error
    assert all(line.startswith("counting") for line in talk)


def test_a_table_of_several_workloads_is_for_predict(ask: Ask, tmp_path: Path) -> None:
    from_frame(testbed.load().frame.head(200)).write(tmp_path / "many.parquet")
    assert "'crossperf predict'" in ask("--from", "many.parquet").stderr


def test_predict_without_a_model_takes_the_one_that_ships(known_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, status in ((["predict", str(known_run)], 0), (["predict"], 2)):
        with pytest.raises(SystemExit) as leaving:
            cli.main(arguments)
        assert (leaving.value.code or 0) == status
    shown = capsys.readouterr()
    assert "xeon-16t" in shown.out
    assert "Missing argument 'TABLE'" in shown.err
