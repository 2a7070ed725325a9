"""Long tables: networks see them in batches, and what does not fit is drawn by whole workloads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from crossperf.cli import commands
from crossperf.dataset import Dataset, build
from crossperf.datasets import toy
from crossperf.model import needs, networks
from crossperf.model.learn import training, vae
from crossperf.model.learn.sizes import MOST_SEEN, Sized
from crossperf.model.networks import VaeDnn


@pytest.fixture(scope="module")
def data() -> Dataset:
    return build(toy.make_table(apps=6, inputs=5, repeats=1, seed=2))


def test_a_network_that_looks_at_a_few_cells_at_a_time_answers_as_that_which_sees_all(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"latent_dim": 4, "vae_width": 16, "width": 16, "epochs": 6, "dnn_part": 0.2, "validation_share": 0.2}
    whole = VaeDnn(**settings).fit(data.X, data.y)
    for module in (training, vae, networks):
        monkeypatch.setattr(module, "AT_ONCE", 32)
    parts = VaeDnn(**settings).fit(data.X, data.y)
    np.testing.assert_allclose(parts.predict(data.X), whole.predict(data.X), atol=2e-3)
    assert parts.summary_["kl_nats"] == pytest.approx(whole.summary_["kl_nats"], rel=0.2)


def test_the_cells_that_a_network_sees_are_bounded_on_long_tables() -> None:
    for cells in (1_000, 100_000, 400_000, 4_000_000):
        seen = Sized.of(cells, 30, {}).epochs * cells
        assert seen <= MOST_SEEN
        assert Sized.of(cells, 30, {}).epochs == pytest.approx(min(60, max(40, 400_000 // cells), MOST_SEEN / cells))


def test_a_model_learns_from_all_cells_where_they_fit(data: Dataset) -> None:
    assert needs.drawn(data, "crossperf", most_bytes=64e9) is data


def test_a_model_learns_from_what_fits_into_the_memory() -> None:
    data = build(toy.make_table(apps=40, inputs=20, repeats=1, seed=2))
    part = needs.drawn(data, "random-forest", most_bytes=0.43e9)
    need = needs.need_of("random-forest")
    assert 1000 <= len(part) < len(data)
    assert len(part.apps) == 40
    assert need.bytes_for(len(part), data.X.shape[1], 4) <= 0.43e9


def test_train_says_what_it_left_out(tmp_path: Path) -> None:
    table = tmp_path / "runs.parquet"
    toy.make_table(apps=40, inputs=20, repeats=1, seed=1).write(table)
    train = ["train", str(table), "--model", "ridge", "-o"]
    arguments = [*train, str(tmp_path / "model"), "--memory", "0.5"]
    result = CliRunner().invoke(commands, arguments)
    assert result.exit_code == 0, result.output
    words = (
        "note: learns from 1,000 of 3,200 cells: 250 of 800 workloads, of 40 of 40 applications; the others are left"
    )
    assert words in result.output
    assert "trained ridge on 1,000 cells" in result.output
    everything = CliRunner().invoke(commands, [*train, str(tmp_path / "all"), "--memory", "64"])
    assert "left out" not in everything.output
