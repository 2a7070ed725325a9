from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crossperf.errors import SettingsError
from crossperf.schedule import policies
from crossperf.schedule.policies import POLICIES, Ask, Options, make

RNG = np.random.default_rng(0)
ASK = Ask(nodes=2, requested_s=600.0)
#: Two modes of one cluster and another cluster; the fastest is full.
THREE = Options.of(
    ["a-cpu", "a-gpu", "b"],
    clusters=["a", "a", "b"],
    run_s=[100.0, 10.0, 50.0],
    nodes=[8, 8, 4],
    free_nodes=[1, 1, 4],
    queued=[3, 3, 0],
    price_per_node_hour=[1.0, 1.0, 0.1],
    wait_s=[60.0, 60.0, 0.0],
)


def choice(name: str, ask: Ask = ASK, options: Options = THREE) -> str:
    return options.platforms[make(name)(ask, options, RNG)]


def test_each_policy_takes_what_its_sentence_says() -> None:
    assert choice("fastest") == "a-gpu"
    assert choice("fastest-available") == "b"
    assert choice("wait-time") == "b"
    assert choice("turnaround") == "b"
    assert choice("cheapest") == "b"
    assert choice("pinned") == "a-gpu"


def test_fastest_available_queues_for_the_fastest_where_all_are_full() -> None:
    assert choice("fastest-available", Ask(nodes=5, requested_s=1.0)) == "a-gpu"


def test_turnaround_waits_where_that_ends_sooner() -> None:
    options = Options.of(["a", "b"], run_s=[10.0, 50.0], nodes=[1, 1], wait_s=[39.0, 0.0])
    assert choice("turnaround", options=options) == "a"


def test_equal_waits_are_decided_by_the_run_time() -> None:
    assert choice("wait-time", options=Options.of(["a", "b"], run_s=[2.0, 1.0], nodes=[1, 1])) == "b"


def test_cheapest_pays_more_only_to_meet_the_deadline() -> None:
    options = Options.of(
        ["slow", "fast"], run_s=[100.0, 10.0], nodes=[4, 4], price_per_node_hour=[1.0, 20.0], wait_s=[0.0, 5.0]
    )
    assert choice("cheapest", Ask(1, 1.0), options) == "slow"
    assert choice("cheapest", Ask(1, 1.0, deadline_s=100.0), options) == "slow"
    assert choice("cheapest", Ask(1, 1.0, deadline_s=99.0), options) == "fast"
    assert choice("cheapest", Ask(1, 1.0, deadline_s=1.0), options) == "fast"  # too late anywhere: the earliest end


def test_cheapest_counts_on_a_deadline_only_where_wait_and_run_time_are_sure_to_keep_it() -> None:
    def options(wait_s: float, high_s: float) -> Options:
        return Options.of(
            ["slow", "fast"],
            run_s=[50.0, 10.0],
            high_s=[high_s, 10.0],
            low_s=[25.0, 10.0],
            nodes=[4, 4],
            price_per_node_hour=[1.0, 20.0],
            wait_s=[wait_s, 0.0],
        )

    ask = Ask(1, 1.0, deadline_s=100.0)
    assert choice("cheapest", ask, options(20.0, 60.0)) == "slow"  # 2 x 20 + 60
    assert choice("cheapest", ask, options(21.0, 60.0)) == "fast"
    assert choice("cheapest", ask, options(20.0, 61.0)) == "fast"


def test_considerate_does_not_spare_an_idle_cluster_but_one_with_a_queue() -> None:
    def options(queued: int, free: int) -> Options:
        return Options.of(
            ["small", "large"], run_s=[10.0, 11.0], nodes=[4, 64], queued=[queued, 0], free_nodes=[free, 64]
        )

    assert choice("considerate", Ask(4, 1.0), options(0, 4)) == "small"
    assert choice("considerate", Ask(4, 1.0), options(1, 4)) == "large"
    assert choice("considerate", Ask(4, 1.0), options(0, 0)) == "large"


def test_the_users_choice_is_a_placement_or_a_cluster() -> None:
    assert choice("pinned", Ask(1, 1.0, pinned="a-cpu")) == "a-cpu"
    assert choice("pinned", Ask(1, 1.0, pinned="a")) == "a-gpu"
    assert choice("pinned", Ask(1, 1.0, pinned="gone")) == "a-gpu"


def test_random_takes_clusters_alike_and_their_fastest_mode() -> None:
    rng = np.random.default_rng(1)
    taken = [THREE.platforms[policies.random(ASK, THREE, rng)] for _ in range(400)]
    assert set(taken) == {"a-gpu", "b"}
    assert 150 < taken.count("b") < 250


def test_round_robin_takes_turns_and_begins_anew_each_time_it_is_made() -> None:
    turns = make("round-robin")
    assert [THREE.platforms[turns(ASK, THREE, RNG)] for _ in range(4)] == ["a-gpu", "b", "a-gpu", "b"]
    only_b = Options.of(["b"], run_s=[1.0], nodes=[4])
    turns(ASK, only_b, RNG)
    assert THREE.platforms[turns(ASK, THREE, RNG)] == "a-gpu"
    assert choice("round-robin") == "a-gpu"


def test_considerate_leaves_a_long_queue_to_those_who_gain_more() -> None:
    # Alone, 40 s on `fast` and 40 * 2 / 8 = 10 s for each of two behind it make 60, beside 50 and 25 on `other`. With
    # nine before it twenty will stand behind it, and 40 + 200 is more than 75.
    facts = {"run_s": [40.0, 50.0], "nodes": [8, 8]}
    assert choice("considerate", options=Options.of(["fast", "other"], **facts)) == "fast"
    assert choice("considerate", options=Options.of(["fast", "other"], **facts, queued=[9, 0])) == "other"
    much = Options.of(["fast", "other"], run_s=[1.0, 50.0], nodes=[8, 8], queued=[9, 0])
    assert choice("considerate", options=much) == "fast"


def test_considerate_takes_the_surer_of_two_equal_predictions() -> None:
    options = Options.of(["unsure", "sure"], run_s=[10, 10], nodes=[4, 4], low_s=[2, 9], high_s=[50, 11])
    assert choice("considerate", options=options) == "sure"


def test_the_expected_run_time_is_the_mean_of_draws_from_the_range() -> None:
    draws = 10.0 * np.exp(0.7 * np.random.default_rng(0).standard_normal(400_000))
    low, high = np.quantile(draws, [0.1, 0.9])
    options = Options.of(["x"], run_s=[10.0], nodes=[1], low_s=[low], high_s=[high])
    assert policies.expected_run_s(options)[0] == pytest.approx(draws.mean(), rel=0.01)


def test_a_wait_is_asked_for_only_by_policies_that_use_it() -> None:
    asked = []

    def wait_s() -> np.ndarray:
        asked.append(1)
        return np.zeros(1)

    options = Options.of(["x"], run_s=[1.0], nodes=[4], wait_s=wait_s)
    for name in ("random", "round-robin", "fastest", "fastest-available", "pinned"):
        make(name)(ASK, options, RNG)
    assert not asked
    make("turnaround")(ASK, options, RNG)
    assert asked == [1]


def test_a_user_adds_a_policy_in_a_few_lines(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def emptiest(ask, options, rng):\n    return int(options.free_nodes.argmax())\n")
    assert THREE.platforms[make(f"{path}:emptiest")(ASK, THREE, RNG)] == "b"
    with pytest.raises(SettingsError, match="defines no 'fullest'"):
        make(f"{path}:fullest")
    path.write_text("emptiest = 3\n")
    with pytest.raises(SettingsError, match=r"emptiest is no function, expected one of \(ask, options, rng\)"):
        make(f"{path}:emptiest")
    with pytest.raises(SettingsError, match="no such file"):
        make(f"{tmp_path / 'none.py'}:emptiest")


def test_a_policy_that_is_registered_is_found_by_name() -> None:
    @policies.policy("last")
    def last(ask: Ask, options: policies.Options, rng: np.random.Generator) -> int:
        return len(options.platforms) - 1

    try:
        assert choice("last") == "b"
    finally:
        del POLICIES["last"]


def test_an_unknown_policy_raises_with_the_nearest_name() -> None:
    with pytest.raises(SettingsError, match="did you mean 'turnaround'"):
        make("turnarond")
