"""What is particular to the networks: stages that can be switched off, collapse, held-out groups, devices."""

from typing import Any

import numpy as np
import pytest
import torch

from crossperf.dataset import Dataset, Features
from crossperf.errors import SettingsError
from crossperf.model import Dnn, VaeDnn
from crossperf.model.fitted.model import FittedModel, Forecaster, KnownRuns, LatentSpace
from crossperf.model.learn.sizes import SMOOTH_DROPOUT
from crossperf.model.learn.training import filled
from crossperf.model.store import flatten, restore
from tests.model.conftest import QUICK


def quick(**settings: Any) -> VaeDnn:
    return VaeDnn(**{**QUICK["vae-dnn"], **settings})


def test_the_regressor_is_three_layers_of_1024_on_the_latent_mean() -> None:
    weights = VaeDnn(epochs=0.1, latent_dim=7).fit(np.eye(3), np.eye(3)[:, :2]).fitted_.part.regressor.weights
    assert [weight.shape for weight in weights] == [(1024, 7), (1024, 1024), (1024, 1024), (2, 1024)]


@pytest.mark.parametrize(
    "off",
    [
        {"calibrated": False},
        {"cpu_part": 0.0},
        {"vae_part": 0.0},
        {"feedback_part": 0.0, "dnn_part": 0.96},
        {"dnn_part": 0.1},
        {"kl_schedule": "constant"},
        {"kl_schedule": "cyclical"},
        {"mask_share": 0.2},
        {"bins": 1},
        {"dropout": 0.0},
        {"feedback_weight": 0.0},
        {"feedback_weight": 0.5},
        {"validation_share": 0.3},
    ],
    ids=str,
)
def test_each_stage_can_be_switched_off_and_that_changes_the_model(off: dict[str, Any], toy_data: Dataset) -> None:
    whole = quick().learn(toy_data).predict(toy_data.X)
    without = quick(**off).learn(toy_data).predict(toy_data.X)
    assert np.isfinite(without).all()
    assert not np.array_equal(whole, without)


def test_the_calibration_on_cpu_cells_needs_cells_of_both_kinds(toy_data: Dataset) -> None:
    X, y = Features(toy_data.X.values_nf, toy_data.X.columns), toy_data.y  # without the class of its platforms
    nothing_known = quick().fit(X, y).predict(X)
    all_cpu = quick().fit(X, y, cpu=np.ones(len(X), bool)).predict(X)
    some_cpu = quick().fit(X, y, cpu=toy_data.cpu_n).predict(X)
    assert np.array_equal(nothing_known, all_cpu)
    assert not np.array_equal(nothing_known, some_cpu)


def test_the_summary_says_what_the_latent_space_carries_and_sees_a_collapse(toy_data: Dataset) -> None:
    lively = quick(epochs=160).learn(toy_data).summary_
    assert 0 < lively["informed_units"] <= lively["latent_dim"] == 8
    assert lively["kl_nats"] > 1
    assert 0.1 < lively["decoder_gain"] <= 1
    assert not lively["collapsed"]
    # A sigma of 1 on standard features, and no regressor to ask for information: the KL term wins.
    still = quick(calibrated=False, feedback_weight=0.0, kl_schedule="constant").learn(toy_data).summary_
    assert still["kl_nats"] < lively["kl_nats"]
    assert still["decoder_gain"] < lively["decoder_gain"]


@pytest.mark.parametrize("kind", [VaeDnn, Dnn])
def test_units_of_the_first_layer_stay_active_however_many_bins_they_see(kind: Any, toy_data: Dataset) -> None:
    """Places in bins are never negative: uncentred, most units would be pushed below zero for every cell."""
    part = kind(**QUICK[kind.name] | {"bins": 60}).learn(toy_data).fitted_.part
    first = part.vae_encoder if kind is VaeDnn else part.regressor
    inputs_ni = part.inputs(part.encoder(toy_data.X.values_nf))
    active_nu = inputs_ni @ first.weights[0].T + first.biases[0] > 0
    assert active_nu.any(axis=0).mean() > 0.9


def test_what_is_learned_belongs_to_the_workload_whichever_platform_was_profiled(toy_data: Dataset) -> None:
    """Targets of one workload differ by their source alone, which the network never sees of them."""
    fitted = quick().learn(toy_data).fitted_
    assert fitted.of_workload
    own_n = fitted.predict(toy_data.X)[np.arange(len(toy_data)), toy_data.source_n]
    assert (own_n == 0).all()
    np.testing.assert_allclose(fitted.part.mean_p.mean(), 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", [VaeDnn, Dnn])
def test_times_relative_to_the_source_can_be_asked_for_as_target(kind: Any, toy_data: Dataset) -> None:
    fitted = kind(**QUICK[kind.name], target="source").learn(toy_data).fitted_
    assert not fitted.of_workload
    np.testing.assert_allclose(fitted.part.mean_p, toy_data.y.mean(axis=0))


@pytest.mark.parametrize("kind", [VaeDnn, Dnn])
def test_targets_that_are_not_relative_to_the_source_are_learned_as_they_are(kind: Any, toy_data: Dataset) -> None:
    model = kind(**QUICK[kind.name]).fit(toy_data.X, toy_data.y + 3.0)
    assert not model.fitted_.of_workload
    assert model.predict(toy_data.X).mean() == pytest.approx(toy_data.y.mean() + 3.0, abs=0.5)


def test_a_platform_that_cannot_run_a_workload_teaches_nothing_and_hurts_nothing(toy_data: Dataset) -> None:
    rng = np.random.default_rng(0)
    cannot_w = rng.random(len(toy_data.workloads)) < 0.3
    gpu = len(toy_data.platforms) - 1
    kept_n = ~(cannot_w[toy_data.workload_n] & (toy_data.source_n == gpu))
    gappy_np = np.where(cannot_w[toy_data.workload_n][:, None] & (np.arange(gpu + 1) == gpu), np.nan, toy_data.y)
    model = quick().fit(toy_data.X[kept_n], gappy_np[kept_n])
    assert model.fitted_.of_workload
    predicted_np = model.predict(toy_data.X[kept_n])
    assert np.isfinite(predicted_np).all()
    assert np.nanmean(np.abs(predicted_np - gappy_np[kept_n])) < 0.3 * np.nanmean(np.abs(gappy_np[kept_n]))


def test_answers_are_drawn_towards_the_mean_where_held_out_groups_ask_for_it(toy_data: Dataset) -> None:
    """Noise that no feature tells of: the best answer on new workloads is the mean of the known ones."""
    noise_wp = np.random.default_rng(0).normal(size=(len(toy_data.workloads), len(toy_data.platforms)))
    noise_np = noise_wp[toy_data.workload_n]
    own_n1 = np.take_along_axis(noise_np, toy_data.source_n[:, None], axis=1)
    of_noise = quick(tune=True).fit(toy_data.X, noise_np - own_n1).summary_
    of_law = quick(tune=True).learn(toy_data).summary_
    assert of_noise["kept"] < 0.6
    assert of_law["kept"] > 0.9


def test_smooth_settings_give_way_to_sharp_ones_for_cells_of_known_workloads(toy_data: Dataset) -> None:
    """The same noise is learned by heart where other runs of the workload are known, as the groups say."""
    noise_wp = np.random.default_rng(0).normal(size=(len(toy_data.workloads), len(toy_data.platforms)))
    noise_np = noise_wp[toy_data.workload_n]
    target_np = noise_np - np.take_along_axis(noise_np, toy_data.source_n[:, None], axis=1)
    settings: dict[str, Any] = {"tune": True, "dropout": None, "epochs": 60}
    of_cells = quick(**settings).fit(toy_data.X, target_np, groups=np.arange(len(toy_data))).summary_
    of_workloads = quick(**settings).fit(toy_data.X, target_np).summary_
    assert (of_cells["dropout"], of_workloads["dropout"]) == (0.0, SMOOTH_DROPOUT)


def test_held_out_groups_are_whole_and_of_the_share_asked_for() -> None:
    groups = np.repeat(np.arange(20), 5)
    train, held_out = quick()._hold_out(groups, 0.25)
    assert len(set(groups[held_out])) == 5
    assert not set(groups[train]) & set(groups[held_out])
    assert len(train) + len(held_out) == 100


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"latent_dim": 0}, "latent_dim: found 0 for the model 'vae-dnn', expected 1 or more"),
        ({"dropout": 1.0}, "dropout: found 1.0 for the model 'vae-dnn', expected a share below 1"),
        ({"learning_rate": -1.0}, "learning_rate: found -1.0 for the model 'vae-dnn', expected 0 or more"),
        ({"kl_schedule": "sudden"}, "kl_schedule: found 'sudden' for the model 'vae-dnn', expected one of linear"),
        (
            {"feedback_part": 0.0},
            "feedback_part: found 0.0 for the model 'vae-dnn', expected more than 0 where dnn_part",
        ),
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


def test_the_latent_space_is_what_the_protocols_promise(toy_data: Dataset) -> None:
    latent_space = quick().learn(toy_data).fitted_.part
    assert isinstance(latent_space, LatentSpace)
    assert latent_space.latent(toy_data.X).shape == (len(toy_data), 8)
    assert not isinstance(latent_space, KnownRuns)
    assert not isinstance(latent_space, Forecaster)
    assert not isinstance(Dnn(**QUICK["dnn"]).learn(toy_data).fitted_.part, LatentSpace)


@pytest.mark.parametrize("kind", [VaeDnn, Dnn])
def test_plain_arrays_predict_what_torch_does(kind: Any, toy_data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    networks: list[torch.nn.Module] = []
    build = kind._build

    def kept(self: Any, *sizes: Any) -> torch.nn.Module:
        networks.append(build(self, *sizes))
        return networks[0]

    monkeypatch.setattr(kind, "_build", kept)
    fitted = kind(**QUICK[kind.name], device="cpu").learn(toy_data)
    part = fitted.fitted_.part
    x_nf, seen_nf = filled(part.encoder(toy_data.X.values_nf), torch.device("cpu"))
    with torch.no_grad():
        standard_np = fitted._forward(networks[0].eval(), x_nf, seen_nf).double().numpy()
    expected_np = standard_np * part.scale_p + part.mean_p
    np.testing.assert_allclose(part.predict(toy_data.X), expected_np, rtol=0, atol=1e-5)


NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device here")


@pytest.mark.gpu
@NO_GPU
def test_a_model_trained_on_a_gpu_answers_without_it(toy_data: Dataset) -> None:
    fitted = quick(device="cuda").learn(toy_data).fitted_
    arrays = flatten(fitted)
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    np.testing.assert_array_equal(restore(FittedModel, arrays).predict(toy_data.X), fitted.predict(toy_data.X))


@pytest.mark.gpu
@NO_GPU
def test_a_gpu_learns_what_the_cpu_learns(toy_data: Dataset) -> None:
    """Other draws, the same law: both are near the truth and, beside what there is to learn, near each other."""
    X, truth = toy_data.X, toy_data.y
    on_gpu, on_cpu = (VaeDnn(device=device).learn(toy_data).predict(X) for device in ("cuda", "cpu"))
    to_learn = np.abs(truth).mean()
    assert np.abs(on_gpu - truth).mean() < 0.2 * to_learn
    assert np.abs(on_cpu - truth).mean() < 0.2 * to_learn
    assert np.abs(on_gpu - on_cpu).mean() < 0.2 * to_learn
