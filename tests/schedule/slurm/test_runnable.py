"""The table for Slurm sends no job where it cannot run, and changes nothing for a run that looks unknown."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from crossperf.records import CANNOT_RUN, Familiarity, Prediction
from crossperf.schedule.slurm import ranking, setup, table
from crossperf.schedule.slurm.table import PlacementTable
from tests.schedule.slurm.conftest import install, order, table_of
from tests.schedule.slurm.lua import LUAS, place

TIMES = {"epyc-2": 1.0, "genoa": 0.5, "h200": 0.1}
JOB = {"name": "lmp", "user_name": "ann", "min_nodes": 4294967294, "min_cpus": 1, "time_limit": 60}


def prediction(input_: str = "melt", *, cannot: tuple[str, ...] = (), looks: str = "familiar") -> Prediction:
    times = {name: math.nan if name in cannot else time for name, time in TIMES.items()}
    familiarity = Familiarity(looks, 3.0 if looks == "unknown" else 0.5)
    reasons = dict.fromkeys(cannot, CANNOT_RUN)
    return Prediction("lmp", input_, "epyc-2", "epyc-2", times, times, familiarity=familiarity, cannot=reasons)


def placement(*predictions: Prediction, reference: str = "epyc-2") -> PlacementTable:
    return table_of(ranking.from_predictions(predictions, reference), "fastest")


def test_a_partition_that_cannot_run_a_workload_is_no_choice() -> None:
    made = placement(prediction(cannot=("h200",)))
    assert order(made, ("lmp", "", "melt")) == ["big", "cpu"]
    assert order(made, ("lmp", "", "")) == ["big", "cpu"]


def test_a_workload_that_a_single_partition_can_run_has_that_alone() -> None:
    made = placement(prediction(cannot=("h200", "genoa")), prediction("other"))
    assert order(made, ("lmp", "", "melt")) == ["cpu"]
    assert order(made, ("lmp", "", "")) == ["cpu"], "an input nobody has seen goes where all can run"


def test_a_workload_that_cannot_run_in_the_default_partition_is_compared_elsewhere() -> None:
    known = ranking.from_predictions([prediction(cannot=("h200",))], "h200")
    assert known["lmp", "", "melt"].spans["genoa"].relative == 0.5
    assert "h200" not in known["lmp", "", "melt"].spans


def test_a_run_that_looks_unknown_has_a_row_without_choices() -> None:
    made = placement(prediction(looks="unknown"), prediction("a"), prediction("b"))
    assert order(made, ("lmp", "", "melt")) == []
    assert order(made, ("lmp", "", "")) == ["gpu", "big", "cpu"]


def test_an_application_whose_runs_mostly_look_unknown_stays_as_it_is() -> None:
    made = placement(prediction(looks="unknown"), prediction("a", looks="unknown"), prediction("b"))
    assert order(made, ("lmp", "", "")) == []


def test_of_several_runs_of_a_workload_those_that_look_known_count() -> None:
    assert order(placement(prediction(looks="unknown"), prediction()), ("lmp", "", "melt")) == ["gpu", "big", "cpu"]


def test_a_row_without_choices_survives_the_file(tmp_path: Path) -> None:
    made = placement(prediction(looks="unknown"))
    made.write(tmp_path / "t")
    row = table.read(tmp_path / "t").row(("lmp", "", "melt"))
    assert row is not None
    assert row.choices == ()


@pytest.mark.parametrize("lua", LUAS)
def test_the_plugin_changes_nothing_for_a_run_that_looks_unknown(lua: str, tmp_path: Path) -> None:
    install(tmp_path)
    placement(prediction(looks="unknown"), prediction("a"), prediction("b")).write(tmp_path / setup.TABLE)
    unknown, other = place(lua, tmp_path, JOB | {"comment": "input=melt"}, JOB | {"comment": "input=a"})
    assert (unknown["partition"], unknown["time_limit"], unknown["user"]) == (None, 60, [])
    assert other["partition"] == "gpu"


@pytest.mark.parametrize("lua", LUAS)
def test_the_plugin_sends_no_job_where_it_cannot_run(lua: str, tmp_path: Path) -> None:
    install(tmp_path)
    placement(prediction(cannot=("h200",)), prediction("a")).write(tmp_path / setup.TABLE)
    jobs = [JOB | {"comment": f"input={name}"} for name in ("melt", "a", "nobody-has-seen")]
    assert [done["partition"] for done in place(lua, tmp_path, *jobs)] == ["big", "gpu", "big"]
