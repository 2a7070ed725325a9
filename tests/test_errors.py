from __future__ import annotations

import pytest

from crossperf.errors import CrossperfError, SettingsError, did_you_mean, some_of


def test_the_facts_of_an_error_travel_as_attributes() -> None:
    error = CrossperfError("runs.csv, row 3: no app", row=3, path="runs.csv")
    assert (str(error), error.row, error.path) == ("runs.csv, row 3: no app", 3, "runs.csv")  # type: ignore[attr-defined]
    assert error.facts == {"row": 3, "path": "runs.csv"}


def test_a_bad_setting_can_be_caught_as_a_value_error() -> None:
    with pytest.raises(ValueError, match="folds"):
        raise SettingsError("folds must be 2 or more")


@pytest.mark.parametrize(
    ("word", "hint"),
    [("runtime", "runtime_s"), ("RUNTIME_S", "runtime_s"), ("Platfrom", "platform"), ("zebra", None), ("", None)],
)
def test_the_nearest_known_word_is_suggested_whatever_its_case(word: str, hint: str | None) -> None:
    expected = "" if hint is None else f" (did you mean {hint!r}?)"
    assert did_you_mean(word, ["app", "platform", "runtime_s"]) == expected


@pytest.mark.parametrize(
    ("names", "words"), [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")]
)
def test_a_long_list_is_cut_with_a_count_of_the_rest(names: list[str], words: str) -> None:
    assert some_of(names, limit=2) == words


def test_a_sentence_is_never_longer_than_a_person_reads() -> None:
    text = str(CrossperfError("found " + "x" * 100_000 + ", expected less. Shorten it."))
    assert len(text) == 2_000
    assert text.startswith("found xxx")
    assert text.endswith("expected less. Shorten it.")


def test_a_word_of_a_megabyte_is_compared_with_nothing() -> None:
    assert did_you_mean("platform" * 100_000, ["platform"]) == ""
    assert did_you_mean("platfrm", ["platform" * 100_000, "platform"]) == " (did you mean 'platform'?)"
