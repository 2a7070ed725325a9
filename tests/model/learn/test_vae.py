"""The losses of the VAE, each by a second road."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence

from crossperf.model.fitted.network import Bins, Mlp, Network
from crossperf.model.fitted.scales import Encoder
from crossperf.model.learn import vae
from crossperf.model.learn.training import filled


def test_kl_agrees_with_torchs_own_distributions() -> None:
    torch.manual_seed(0)
    mean, log_var = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    standard = Normal(torch.zeros_like(mean), torch.ones_like(mean))
    expected = kl_divergence(Normal(mean, (0.5 * log_var).exp()), standard).sum(dim=1)
    assert torch.allclose(vae.kl_to_standard_normal(mean, log_var), expected)


def test_kl_agrees_with_an_average_over_many_draws() -> None:
    torch.manual_seed(0)
    mean, log_var = torch.tensor([[0.7, -0.2]]), torch.tensor([[-1.0, 0.3]])
    draws = vae.sample(mean.expand(200_000, 2), log_var.expand(200_000, 2))
    q, p = Normal(mean, (0.5 * log_var).exp()), Normal(0.0, 1.0)
    estimate = (q.log_prob(draws) - p.log_prob(draws)).sum(dim=1).mean()
    assert vae.kl_to_standard_normal(mean, log_var).item() == pytest.approx(estimate.item(), abs=0.01)


def test_likelihood_agrees_with_torchs_normal_over_what_was_seen() -> None:
    torch.manual_seed(0)
    x, decoded = torch.randn(4, 6, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64)
    seen = (torch.rand(4, 6) > 0.3).double()
    log_sigma = torch.tensor(-0.4, dtype=torch.float64)
    expected = (-Normal(decoded, log_sigma.exp()).log_prob(x) * seen).sum(dim=1)
    assert torch.allclose(vae.gaussian_nll(x, decoded, seen, log_sigma), expected)


def test_closed_form_sigma_is_the_same_as_by_a_search() -> None:
    torch.manual_seed(1)
    x, decoded = torch.randn(50, 8), 0.3 * torch.randn(50, 8)
    seen = (torch.rand(50, 8) > 0.2).float()
    grid = torch.linspace(-2, 2, 4001)
    losses = torch.stack([vae.gaussian_nll(x, decoded, seen, log_sigma).mean() for log_sigma in grid])
    best = grid[losses.argmin()].item()
    assert vae.optimal_log_sigma(x, decoded, seen).item() == pytest.approx(best, abs=0.01)


def test_sigma_squared_is_the_mean_squared_error_worked_by_hand() -> None:
    x, decoded = torch.tensor([[1.0, 5.0], [2.0, 0.0]]), torch.tensor([[0.0, 5.0], [2.0, 9.0]])
    seen = torch.tensor([[1.0, 1.0], [1.0, 0.0]])  # the 9 was not measured and does not count
    assert vae.optimal_log_sigma(x, decoded, seen).exp().square().item() == pytest.approx(1 / 3, rel=0.01)


def test_sigma_has_a_soft_floor_for_a_perfect_copy() -> None:
    x = torch.ones(3, 2)
    log_sigma = vae.optimal_log_sigma(x, x, torch.ones(3, 2)).item()
    assert math.isfinite(log_sigma)
    assert log_sigma == pytest.approx(-6.0, abs=0.01)


@pytest.mark.parametrize("schedule", ["linear", "cyclical", "constant"])
def test_every_kl_schedule_ends_at_one_and_stays_between_zero_and_one(schedule: vae.Schedule) -> None:
    weights = [vae.kl_weight(schedule, p) for p in np.linspace(0, 1, 101)]
    assert weights[-1] == 1.0
    assert all(0.0 <= weight <= 1.0 for weight in weights)


def test_active_units_counts_the_units_that_vary() -> None:
    torch.manual_seed(0)
    means = torch.stack([torch.randn(100), torch.full((100,), 3.0), 0.05 * torch.randn(100)], dim=1)
    assert vae.active_units(means) == 1


def untrained(**settings: Any) -> vae.Vae:
    torch.manual_seed(0)
    return vae.Vae(features=3, latent_dim=2, width=8, **settings)


def test_a_space_that_varies_and_tells_nothing_has_collapsed() -> None:
    """Means that vary by a tenth of a spread make units active; the decoder that ignores them restores nothing."""
    x = torch.randn(2000, 3, generator=torch.Generator().manual_seed(1))
    network = untrained()
    torch.nn.init.zeros_(network.decoder[-1].weight)
    torch.nn.init.zeros_(network.decoder[-1].bias)
    with torch.no_grad():
        network.encoder[-1].weight.mul_(6.0)
        facts = vae.Information.of(network, x, torch.ones_like(x))
    assert facts.active_units == 2
    assert facts.decoder_gain == pytest.approx(0.0, abs=0.01)
    assert facts.collapsed


def test_information_is_that_of_a_channel_worked_by_hand() -> None:
    """A unit that copies a feature with noise of a fifth: KL and error follow from mean and variance alone."""
    x = torch.randn(20_000, 1, generator=torch.Generator().manual_seed(1))
    network = vae.Vae(features=1, latent_dim=1, width=2)
    log_var = 2 * math.log(0.2)
    network.encode = lambda x_nf, seen_nf: (x_nf, torch.full_like(x_nf, log_var))  # type: ignore[method-assign]
    network.decoder = torch.nn.Identity()  # type: ignore[assignment]
    facts = vae.Information.of(network, x, torch.ones_like(x))
    assert facts.kl_nats == pytest.approx(0.5 * (1.0 + 0.04 - 1.0 - log_var), rel=0.02)
    assert facts.sigma == pytest.approx(0.2, rel=0.02)
    assert facts.decoder_gain == pytest.approx(1 - 0.04, abs=0.005)
    assert (facts.informed_units, facts.collapsed) == (1, False)


def test_a_mean_folded_into_the_bias_changes_no_answer() -> None:
    torch.manual_seed(0)
    x, seen = torch.randn(50, 3) + 2.0, (torch.rand(50, 3) > 0.2).float()
    inputs = vae.Inputs(3, Bins.fit(x.numpy().astype(np.float64), most=4))
    layer = torch.nn.Linear(inputs.count, 5)
    inputs.centre_on(x, seen)
    centred = inputs(x, seen)
    assert torch.allclose(centred.mean(dim=0), torch.zeros(inputs.count), atol=1e-6)
    expected = layer(centred)
    inputs.fold_into(layer)
    assert torch.allclose(layer(inputs(x, seen)), expected, atol=1e-5)
    assert (inputs.centre == 0).all()


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_values_that_are_heard_with_a_weight_are_the_same_and_their_gradients_are_not(weight: float) -> None:
    values = torch.tensor([1.0, -2.0], requires_grad=True)
    heard = vae.heard(values, weight)
    assert torch.equal(heard, values)
    (3.0 * heard).sum().backward()  # type: ignore[no-untyped-call]
    assert values.grad is not None
    assert torch.allclose(values.grad, torch.full((2,), 3.0 * weight))


def test_what_the_first_layer_sees_in_training_is_what_the_fitted_model_computes() -> None:
    rng = np.random.default_rng(0)
    standard_nf = rng.normal(size=(50, 3))
    standard_nf[rng.random((50, 3)) < 0.2] = np.nan
    bins = Bins.fit(standard_nf, most=4)
    x_nf, seen_nf = filled(standard_nf, torch.device("cpu"))
    nothing = Mlp((), ())
    expected = Network(Encoder.fit(standard_nf), *[np.zeros(1)] * 2, nothing, bins=bins).inputs(standard_nf)
    np.testing.assert_allclose(vae.Inputs(3, bins)(x_nf, seen_nf).numpy(), expected, atol=1e-6)


def test_a_counter_that_was_not_measured_and_a_measured_zero_are_two_inputs() -> None:
    network = untrained()
    x = torch.zeros(1, 3)
    measured, _ = network.encode(x, torch.ones(1, 3))
    missing, _ = network.encode(x, torch.tensor([[1.0, 0.0, 1.0]]))
    assert not torch.allclose(measured, missing)


def test_what_was_not_measured_cannot_reach_the_encoder() -> None:
    network = untrained()
    seen = torch.tensor([[1.0, 0.0, 1.0]])
    first, _ = network.encode(torch.tensor([[1.0, 5.0, 2.0]]), seen)
    other, _ = network.encode(torch.tensor([[1.0, -9.0, 2.0]]), seen)
    assert torch.equal(first, other)


def test_pooled_dropout_silences_its_share_keeps_the_mean_and_rests_in_evaluation() -> None:
    torch.manual_seed(0)
    layer = vae.PooledDropout(width=512, share=0.3)
    out = layer(torch.ones(256, 512))
    assert (out == 0).float().mean().item() == pytest.approx(0.3, abs=0.01)
    assert out.mean().item() == pytest.approx(1.0, abs=0.02)
    assert not torch.equal(out, layer(torch.ones(256, 512)))
    assert torch.equal(layer.eval()(torch.ones(4, 512)), torch.ones(4, 512))
