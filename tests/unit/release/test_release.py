"""Releases as values: written, copied, compared, rounded; an interval follows from what is stored."""

import copy
import json
import pickle
from datetime import date

import numpy as np
import pytest

import discreet
from discreet import InvalidParameter, Release, Releases

AGES, REALS = np.arange(100), np.arange(100.0)
BOUNDED = {"bounds": (0, 100), "epsilon": 2}


def endless():
    return discreet.count([1], epsilon=1) / discreet.count([1], epsilon="1e-6")


RELEASES = {
    "count": lambda: discreet.count(REALS, epsilon=1),
    "sum": lambda: discreet.sum(AGES, **BOUNDED),
    "mean": lambda: discreet.mean(AGES, **BOUNDED),
    "mean of a private number": lambda: discreet.mean(REALS, **BOUNDED),
    "mean, add-remove": lambda: discreet.mean(AGES, neighbors="add-remove", **BOUNDED),
    "mean of the textbook": lambda: discreet.mean(REALS, method="laplace", **BOUNDED),
    "variance": lambda: discreet.variance(AGES, sample=True, **BOUNDED),
    "std": lambda: discreet.std(AGES, **BOUNDED),
    "std of a private number": lambda: discreet.std(REALS, **BOUNDED),
    "std of the textbook": lambda: discreet.std(AGES, method="laplace", **BOUNDED),
    "proportion": lambda: discreet.proportion(AGES > 50, epsilon=1),
    "median": lambda: discreet.median(REALS, **BOUNDED),
    "median without a bracket": lambda: discreet.median(AGES, confidence=None, **BOUNDED),
    "max": lambda: discreet.max(AGES, **BOUNDED),
    "quantiles": lambda: discreet.quantiles(AGES, [0.25, 0.75], **BOUNDED),
    "quantiles of a tree": lambda: discreet.quantiles(AGES, [0.1, 0.3, 0.5, 0.7, 0.9], **BOUNDED),
    "histogram": lambda: discreet.histogram(AGES, bins=[0, 18, 100], epsilon=1),
    "categories": lambda: discreet.value_counts(
        [date(2020, 1, 1)] * 9, keys=[date(2020, 1, 1)], epsilon=1, other="é"
    ),
    "cdf": lambda: discreet.cdf(AGES, cells=8, **BOUNDED),
    "mean and std": lambda: discreet.mean_and_std(AGES, **BOUNDED),
    "summary": lambda: discreet.summary(REALS, **BOUNDED),
    "arithmetic": lambda: (
        3 - discreet.count(AGES, epsilon=1) * np.float64(-2) / 3 + discreet.count(AGES, epsilon=1)
    ),
    "a ratio without ends": (
        lambda: discreet.sum(AGES, **BOUNDED) / (discreet.count([1], epsilon="1e-6") * 0.1)
    ),
    "no number": lambda: endless() - endless(),
    "a ratio": lambda: discreet.sum(AGES, **BOUNDED) / discreet.count(AGES, epsilon=2),
}


@pytest.fixture(scope="module")
def releases():
    return {name: make() for name, make in RELEASES.items()}


@pytest.mark.parametrize("name", RELEASES)
def test_a_copy_tells_the_same_at_every_confidence(name, releases):
    release = releases[name]
    for again in (
        pickle.loads(pickle.dumps(release)),  # noqa: S301 - our own
        copy.copy(release),
        copy.deepcopy(release),
        type(release).from_json(release.to_json()),
    ):
        assert type(again) is type(release)
        assert again == release
        assert hash(again) == hash(release)
        assert repr(again) == repr(release)
        for confidence in ("0.5", "0.99"):
            assert repr(again.interval(confidence)) == repr(release.interval(confidence))
        if isinstance(release, Release):
            assert repr(again.interval(simultaneous=True)) == repr(
                release.interval(simultaneous=True)
            )
            assert repr(again + 1) == repr(release + 1)
    assert [other for other in releases if releases[other] == release] == [name]


@pytest.mark.parametrize("name", RELEASES)
def test_a_dictionary_is_for_readers(name, releases):
    found = releases[name].to_dict()
    json.dumps(found, default=str)
    parts = (
        [part for part in found.values() if isinstance(part, dict)]
        if "value" not in found
        else [found]
    )
    assert parts
    for part in parts:
        assert {
            "statistic",
            "value",
            "low",
            "high",
            "epsilon",
            "sensitivity",
            "scale",
            "neighbors",
        } <= set(part)
        assert part["epsilon"].replace("/", "").isdigit()
        assert all(
            isinstance(part[end], int | float | list | None) for end in ("value", "low", "high")
        )


def test_a_file_holds_the_release(tmp_path, releases):
    place = releases["mean"].save(tmp_path / "mean.json")
    assert Release.from_json(place.read_text("utf-8")) == releases["mean"]
    with pytest.raises(InvalidParameter, match="must not exist"):
        releases["sum"].save(place)
    assert (
        Release.from_json(releases["sum"].save(place, force=True).read_bytes()) == releases["sum"]
    )
    with pytest.raises(InvalidParameter, match=r"must end in \.json"):
        releases["mean"].save(tmp_path / "mean.csv")


def test_a_text_that_is_no_release_is_refused(releases):
    whole = json.loads(releases["mean"].to_json())
    for text in (
        "",
        "[]",
        "{}",
        '{"discreet": "Release"}',
        json.dumps({**whole, "epsilon": "x"}),
        # with more digits of the exponent it would take hours
        json.dumps({**whole, "epsilon": "1e9"}),
        json.dumps({**whole, "unknown": 1}),
        json.dumps({**whole, "interval": {"call": "eval", "with": ["1"]}}),
        json.dumps({**whole, "interval": {"call": "single", "with": [{"kind": "Study"}]}}),
        json.dumps({**whole, "interval": "single"}),
    ):
        with pytest.raises(InvalidParameter):
            Release.from_json(text)
    with pytest.raises(InvalidParameter, match="this is Releases, not Release"):
        Release.from_json(releases["summary"].to_json())
    with pytest.raises(InvalidParameter, match="this is Release, not Releases"):
        Releases.from_json(releases["mean"].to_json())


def test_a_release_is_formatted_and_rounded_as_its_number(releases):
    mean, vector = releases["mean"], releases["quantiles"]
    assert f"{mean:.2f}" == f"{mean.value:.2f}"
    assert f"{mean}" == repr(mean)
    assert round(mean, 1) == round(mean.value, 1)
    assert isinstance(round(mean), int)
    assert f"{vector:.1f}" == f"[{vector.value[0]:.1f}, {vector.value[1]:.1f}]"
    assert round(vector, 1).tolist() == np.round(vector.value, 1).tolist()


def test_a_release_is_not_compared_with_a_number(releases):
    mean = releases["mean"]
    for compare in (
        lambda: mean < 3,
        lambda: mean >= mean + 1,
        lambda: 3 > mean,  # noqa: SIM300
        lambda: np.float64(3) < mean,
        lambda: sorted([mean, mean + 1]),
    ):
        with pytest.raises(TypeError, match=r"compare its \.value"):
            compare()
    assert mean != mean.value
    assert mean in [mean]


def test_numbers_of_numpy_keep_the_interval(releases):
    mean = releases["mean"]
    for twice in (np.float64(2) * mean, mean * np.int64(2), 2 * mean):
        assert isinstance(twice, Release)
        assert twice.interval() == tuple(2 * end for end in mean.interval())
    assert np.asarray(mean) == mean.value
