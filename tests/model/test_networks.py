"""What is particular to the networks: stages that can be switched off, collapse, held-out groups, devices."""

from typing import Any

import numpy as np
import pytest
import torch

from crossperf.dataset import Dataset
from crossperf.errors import SettingsError
from crossperf.model import Dnn, VaeDnn
from crossperf.model.networks import EPOCHS, steps_for
from tests.model.conftest import QUICK


def quick(**settings: Any) -> VaeDnn:
    return VaeDnn(**{**QUICK["vae-dnn"], **settings})


def test_the_regressor_is_three_layers_of_1024_on_the_latent_mean() -> None:
    network = VaeDnn()._build(n_features=20, n_outputs=4)
    shapes = [tuple(layer.weight.shape) for layer in network["regressor"] if isinstance(layer, torch.nn.Linear)]  # type: ignore[index]
    assert shapes == [(1024, VaeDnn().latent_dim), (1024, 1024), (1024, 1024), (4, 1024)]


@pytest.mark.parametrize(
    "off",
    [
        {"calibrated": False},
        {"cpu_steps": 0},
        {"vae_steps": 0},
        {"feedback_steps": 0},
        {"dnn_steps": 0},
        {"kl_schedule": "constant"},
        {"kl_schedule": "cyclical"},
        {"mask_share": 0.0},
        {"dropout": 0.0},
        {"feedback_weight": 0.0},
        {"validation_share": 0.3},
    ],
    ids=str,
)
def test_each_stage_can_be_switched_off_and_that_changes_the_model(off: dict[str, Any], toy_data: Dataset) -> None:
    whole = quick().learn(toy_data).predict(toy_data.features_nf)
    without = quick(**off).learn(toy_data).predict(toy_data.features_nf)
    assert np.isfinite(without).all()
    assert not np.array_equal(whole, without)


def test_the_calibration_on_cpu_cells_needs_cells_of_both_kinds(toy_data: Dataset) -> None:
    X, y = toy_data.features_nf, toy_data.y
    nothing_known = quick().fit(X, y).predict(X)
    all_cpu = quick().fit(X, y, cpu=np.ones(len(X), bool)).predict(X)
    some_cpu = quick().fit(X, y, cpu=toy_data.cpu_n).predict(X)
    assert np.array_equal(nothing_known, all_cpu)
    assert not np.array_equal(nothing_known, some_cpu)


def test_the_summary_counts_active_units_and_sees_a_collapse(toy_data: Dataset) -> None:
    active = quick().learn(toy_data).summary_
    assert 0 < active["active_units"] <= active["latent_dim"] == 8
    assert not active["collapsed"]
    # A sigma of 1 on standard features, and no regressor to ask for information: the KL term wins.
    collapsed = quick(calibrated=False, feedback_steps=0, vae_steps=300, kl_schedule="constant").learn(toy_data)
    assert collapsed.summary_["active_units"] < active["active_units"]


def test_held_out_groups_are_whole_and_of_the_share_asked_for() -> None:
    groups = np.repeat(np.arange(20), 5)
    train, held_out = quick(validation_share=0.25)._hold_out(groups)
    assert len(set(groups[held_out])) == 5
    assert not set(groups[train]) & set(groups[held_out])
    assert len(train) + len(held_out) == 100


@pytest.mark.parametrize("cells", [300, 1_000, 30_000, 1_000_000])
def test_steps_grow_no_faster_than_the_table(cells: int) -> None:
    epochs = steps_for(cells, batch_size=128, steps=900) * 128 / cells
    assert epochs <= EPOCHS[1] * 1.01
    assert steps_for(2 * cells, 128, 900) <= 2 * steps_for(cells, 128, 900) + 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"latent_dim": 0}, "latent_dim=0, expected 1 or more"),
        ({"dropout": 1.0}, "dropout=1.0, expected a share below 1"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0, expected 0 or more"),
        ({"kl_schedule": "sudden"}, "kl_schedule='sudden', expected one of linear"),
        ({"device": "warp9"}, "device: found 'warp9'"),
    ],
)
def test_a_setting_out_of_range_is_named(settings: dict[str, Any], words: str, toy_data: Dataset) -> None:
    with pytest.raises(SettingsError, match=words):
        quick(**settings).learn(toy_data)


def test_fitting_leaves_the_callers_random_numbers_alone(toy_data: Dataset) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    Dnn(**QUICK["dnn"]).learn(toy_data)
    assert torch.equal(torch.rand(3), expected)


NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device here")


@pytest.mark.gpu
@NO_GPU
def test_a_model_trained_on_the_cpu_says_the_same_on_a_gpu(toy_data: Dataset) -> None:
    on_cpu = quick(device="cpu").learn(toy_data)
    on_gpu = quick(device="cuda").set_state(on_cpu.get_state())
    X = toy_data.features_nf
    np.testing.assert_allclose(on_gpu.predict(X), on_cpu.predict(X), atol=1e-4)


@pytest.mark.gpu
@NO_GPU
def test_a_gpu_learns_what_the_cpu_learns(toy_data: Dataset) -> None:
    """Other draws, the same law: both are near the truth and, beside what there is to learn, near each other."""
    X, truth = toy_data.features_nf, toy_data.y
    on_gpu, on_cpu = (VaeDnn(device=device).learn(toy_data).predict(X) for device in ("cuda", "cpu"))
    to_learn = np.abs(truth).mean()
    assert np.abs(on_gpu - truth).mean() < 0.2 * to_learn
    assert np.abs(on_cpu - truth).mean() < 0.2 * to_learn
    assert np.abs(on_gpu - on_cpu).mean() < 0.2 * to_learn
