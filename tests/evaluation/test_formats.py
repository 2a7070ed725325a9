"""Files of earlier formats stay readable: the values are those that stand in the file."""

import json
from pathlib import Path

import numpy as np
import pytest

from crossperf import evaluation
from crossperf.adaptation.score import Transfer
from crossperf.errors import CrossperfError
from crossperf.report.figures import FIGURES

FORMAT_2 = Path(__file__).parents[1] / "data" / "formats" / "2"


@pytest.fixture
def facts() -> dict:  # type: ignore[type-arg]
    loaded: dict = json.loads((FORMAT_2 / "evaluation.json").read_text())  # type: ignore[type-arg]
    assert loaded["format"] == 2
    return loaded


def test_an_evaluation_of_format_2_reads_with_all_its_values(facts: dict) -> None:  # type: ignore[type-arg]
    result = evaluation.read(FORMAT_2 / "evaluation.json")
    assert list(result.scores) == ["crossperf", "random-forest", "vae-dnn"]
    for name, scores in result.scores.models.items():
        old = facts["models"][name]
        for figure in evaluation.scores.FIGURES:
            before = "range_factor" if figure == "interval_factor" else figure
            assert scores.mean[figure] == old.get(before)
            assert [fold[figure] for fold in scores.folds] == [fold.get(before) for fold in old["folds"]]
    assert result.scores.noise_ceiling.typical_factor == 1.0424850153206
    assert result.constant.order == ("cpu-b", "cpu-a", "gpu-b", "gpu-a")
    assert result.table.info is not None
    assert result.table.info.platforms[0].platform_class == "cpu"
    assert result.caveats[1:] == tuple(facts["doubts"])
    assert "counts the source platform" in result.caveats[0]


def test_its_cells_and_its_latent_map_read_as_well(facts: dict) -> None:  # type: ignore[type-arg]
    result = evaluation.read(FORMAT_2 / "evaluation.json")
    assert result.held_out is not None
    assert result.latent is not None
    own, old = result.held_out.predictions["crossperf"], facts["held_out"]["said"]["crossperf"]
    np.testing.assert_array_equal(own.predicted_np, np.array(old["log_relative_time"]))
    np.testing.assert_array_equal(own.oddness_n, np.array(old["odd"]))
    assert result.latent.drivers[0].counter == facts["latent"]["drivers"][0][0]
    np.testing.assert_array_equal(result.latent.unseen_n, np.array(facts["latent"]["unseen"], dtype=bool))
    assert FIGURES["errors"](result).tooltips


def test_what_is_read_in_format_2_is_written_in_format_3_and_stays_the_same(tmp_path: Path) -> None:
    result = evaluation.read(FORMAT_2 / "evaluation.json")
    result.write(tmp_path / "e.json")
    assert json.loads((tmp_path / "e.json").read_text())["format"] == 3
    assert evaluation.read(tmp_path / "e.json") == result


def test_scores_of_new_platforms_of_format_1_read_with_all_their_values() -> None:
    old = json.loads((FORMAT_2 / "transfer.json").read_text())
    result = Transfer.from_json(old)
    assert len(result.scores) == 4 * 4
    assert result.of("extra-trees", "3", "scratch")["cpu-a"].column == 1.9317012738698893
    for way, means in old["means"]["extra-trees"]["3"].items():
        for figure in ("column", "vector"):
            assert result.mean("extra-trees", "3", way, figure) == pytest.approx(means[figure])
    assert Transfer.from_json(json.loads(json.dumps(result.to_json()))) == result
    with pytest.raises(CrossperfError, match="found format 9, expected"):
        Transfer.from_json({**old, "format": 9})
