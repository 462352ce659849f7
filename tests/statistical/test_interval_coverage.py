"""How often `.interval("0.95")` holds the truth, for every statistic and relation.

n ∈ {10, 100, 10⁴}, ε ∈ {0.1, 1}, smooth data (floats: how many are not missing is private), data
with ties (integers) and, for some statistics, data of which a fifth is missing. Each assertion has
a false-alarm rate of at most 10⁻⁸, from the tail of the binomial law.

    cell      one statistic, relation, n, ε and shape: fewer hits than 95 % would have. 20 to 250
              runs, so that a
              coverage below 50 to 85 % is caught
    together  the cells of a statistic and relation. At least 95 %; and for histograms, at most 99
              %.
              3,000 runs catch a coverage below 91 % (noise a fifth larger than thought) or above
              99.9 %, 430 runs one below 84 %

A cell is one call of the function. Its design releases the integers of its column as often as there
are runs: as so many groups with the terms of one, or again and again where a design has one group
only. That a call without this gives the number and the interval of its estimate is a test of its
own.

Exact: count, sum, mean, proportion, histogram (discrete noise of a scale near 1 reaches 97 or 98
%); what the same designs release for many groups is held to 94 and 99.7 % in `test_study_coverage`.
At least nominal by design: joint variance (98 to 99.9 %), Bernstein's (96 to 100 %), brackets of
quantiles (97 to 100 %), bands after isotonic regression and the cut at 0 and n (`test_tree_error`
has them before it).
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy import stats

import discreet
from copies import released
from discreet.release.intervals.spreads import in_order
from discreet.release.question import Question

ALARM = 1e-8
LEVEL = "0.95"
SIZES = [10, 100, 10**4]
EPSILONS = ["0.1", "1"]
SHAPES = ["smooth", "ties"]
RELATIONS = ["change-one", "add-remove"]
DECILES = [f"0.{k}" for k in range(1, 10)]
EDGES = [0.0, 0.1, 0.2, 0.4, 0.7, 1.0]

Held = Callable[[Any, np.ndarray, tuple[float, float]], list[bool]]


@cache
def rows(shape: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    if shape == "ties":
        return np.minimum(rng.geometric(0.3, n) - 1, 20)
    found = rng.beta(2, 5, n)
    return np.where(np.arange(n) % 5 == 0, np.nan, found) if shape == "holes" else found


def bounds_of(shape: str) -> tuple[int, int]:
    return (0, 20) if shape == "ties" else (0, 1)


def within(ends: tuple[Any, Any], truth: Any) -> np.ndarray:
    """The ends are floats of exact numbers: the last bits of both sides are rounding."""
    slack = 1e-12 * np.abs(truth)
    return (np.asarray(ends[0]) - slack <= truth) & (truth <= np.asarray(ends[1]) + slack)


def ranked(x: np.ndarray, share: float) -> float:
    return float(np.sort(x)[math.ceil(round(share * len(x), 6)) - 1])


def holds(truth: Callable[[np.ndarray], Any]) -> Held:
    return lambda found, x, _: np.atleast_1d(within(found.interval(LEVEL), truth(x))).tolist()


def true(x: np.ndarray) -> np.ndarray:
    return x > x.mean()


def over_all(found: Any, x: np.ndarray, bounds: tuple[float, float]) -> list[bool]:
    return within(found.interval(LEVEL, simultaneous=True), binned(x, bounds)).all(axis=-1).tolist()


def each_bin(found: Any, x: np.ndarray, bounds: tuple[float, float]) -> list[bool]:
    return within(found.interval(LEVEL), binned(x, bounds)).ravel().tolist()


def binned(x: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    return np.histogram(x, np.array(EDGES) * bounds[1])[0]


def on_the_curve(found: Any, x: np.ndarray, _: tuple[float, float]) -> list[bool]:
    step = found.points[1] - found.points[0]
    truth = np.searchsorted(np.sort(np.floor(x / step + 0.5) * step), found.points + step / 4)
    return within(found.interval(LEVEL), truth).all(axis=-1).tolist()


def deciles(x: np.ndarray) -> np.ndarray:
    return np.array([ranked(x, float(share)) for share in DECILES])


def all_deciles(found: Any, x: np.ndarray, _: tuple[float, float]) -> list[bool]:
    return within(found.interval(LEVEL), deciles(x)).all(axis=-1).tolist()


def middle_of_three(found: Any, x: np.ndarray, _: tuple[float, float]) -> list[bool]:
    """The median of three quantiles, whose ends are put in order in each release."""
    level = Fraction(LEVEL)
    runs = zip(
        *(zip(*spread(level, False), strict=True) for spread in found._spread.args[0]), strict=True
    )
    ends = [in_order([lambda *_, part=part: part for part in run], level, False) for run in runs]
    return [bool(within((low[1], high[1]), deciles(x)[4])) for low, high in ends]


PARTS: dict[str, Callable[[np.ndarray], float]] = {
    "count": len,
    "mean": np.mean,
    "std": np.std,
    "lower_quartile": partial(ranked, share=0.25),
    "median": partial(ranked, share=0.5),
    "upper_quartile": partial(ranked, share=0.75),
}


def all_parts(found: Any, x: np.ndarray, _: tuple[float, float]) -> list[bool]:
    """Each part on its own; they share their noise, so only the worst of them counts, and one may
    miss.
    """
    held = [within(part.interval(LEVEL), PARTS[name](x)) for name, part in found.items()]
    runs = max(len(np.atleast_1d(part)) for part in held)  # the number of values may be public
    return np.stack([np.broadcast_to(part, runs) for part in held], axis=1).ravel().tolist()


def histogram(x: np.ndarray, bounds: tuple[float, float], **given: Any) -> Any:
    return discreet.histogram(x, bins=np.array(EDGES) * bounds[1], **given)


def two_bins(x: np.ndarray, bounds: tuple[float, float], **given: Any) -> Any:
    return discreet.histogram(x, bins=[0, 0.3 * bounds[1], bounds[1]], **given)


def of_truth(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, bounds, **given: function(true(x), **given)  # noqa: ARG005


EXACT: dict[str, tuple[Callable[..., Any], Held, int]] = {
    "histogram": (histogram, each_bin, 50),
    "histogram, simultaneously": (histogram, over_all, 250),
    "two bins": (
        two_bins,
        lambda found, x, bounds: within(found.interval(LEVEL), two(x, bounds))[:, 0].tolist(),
        250,
    ),
}
AT_LEAST: dict[str, tuple[Callable[..., Any], Held, int]] = {
    "count": (of_truth(discreet.count), holds(lambda x: true(x).sum()), 36),
    "sum": (discreet.sum, holds(np.sum), 36),
    "mean": (discreet.mean, holds(np.mean), 36),
    "proportion": (of_truth(discreet.proportion), holds(lambda x: true(x).mean()), 36),
    "variance": (discreet.variance, holds(np.var), 36),
    "std": (discreet.std, holds(np.std), 30),
    "median": (discreet.median, holds(partial(ranked, share=0.5)), 36),
    "quantile": (
        lambda x, **given: discreet.quantile(x, "0.9", **given),
        holds(partial(ranked, share=0.9)),
        36,
    ),
    "three quantiles": (
        lambda x, **given: discreet.quantiles(x, ["0.1", "0.5", "0.9"], **given),
        middle_of_three,
        20,
    ),
    "deciles": (lambda x, **given: discreet.quantiles(x, DECILES, **given), all_deciles, 36),
    "cdf": (partial(discreet.cdf, cells=128), on_the_curve, 60),
}


def two(x: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    return np.histogram(x, [0, 0.3 * bounds[1], bounds[1]])[0]


def least(runs: int) -> int:
    """The fewest hits that are no alarm if the coverage is 95 %."""
    return int(stats.binom.ppf(ALARM, runs, 0.95))


def most(runs: int) -> int:
    """The most hits that are no alarm if the coverage is 99 %."""
    return int(stats.binom.isf(ALARM, runs, 0.99))


def cells(shapes: list[str] = SHAPES) -> list[tuple[str, int, str]]:
    return [(shape, n, epsilon) for shape in shapes for n in SIZES for epsilon in EPSILONS]


def hits(
    call: Callable[..., Any], held: Held, relation: str, runs: int, shapes: list[str] = SHAPES
) -> list[list[bool]]:
    """For each cell, what was held in all of its runs."""
    found = []
    for shape, n, epsilon in cells(shapes):
        x, bounds = rows(shape, n), bounds_of(shape)
        given = {"bounds": bounds, "epsilon": epsilon, "neighbors": relation}
        with released(runs):
            found.append(held(call(x, **given), x, bounds))
    return found


def check_at_least(found: list[list[bool]]) -> None:
    for number, cell in enumerate(found):
        assert sum(cell) >= least(len(cell)), (number, sum(cell), len(cell))
    together = [hit for cell in found for hit in cell]
    assert sum(together) >= least(len(together)), (sum(together), len(together))


def check_at_most(found: list[list[bool]]) -> None:
    together = [hit for cell in found for hit in cell]
    assert sum(together) <= most(len(together)) < len(together), (sum(together), len(together))


CALLS = {name: call for name, (call, *_) in (EXACT | AT_LEAST).items()}
CALLS |= {"mean and std": discreet.mean_and_std, "summary": discreet.summary}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", CALLS)
def test_a_release_has_the_number_and_the_interval_of_its_estimate(name, relation):
    for shape in SHAPES:
        x, bounds, noted, real = rows(shape, 100), bounds_of(shape), [], Question.estimates

        def estimates(*given: Any, real=real, noted=noted, **more: Any) -> Any:
            noted.append(real(*given, **more))
            return noted[-1]

        with mock.patch.object(Question, "estimates", estimates):
            found = CALLS[name](x, bounds=bounds, epsilon="1", neighbors=relation)
        estimates_of_all = [estimate for each in noted for estimate in each.values()]
        if name in ("cdf", "deciles"):  # one tree has both
            estimates_of_all = estimates_of_all[name == "deciles" :][:1]
        parts = list(found.values()) if isinstance(found, discreet.Releases) else [found]
        parts = [part for part in parts if part.epsilon]  # a number may be public
        released_ends = ((part.value, *part.interval(LEVEL)) for part in parts)
        estimated_ends = ((one.values, *one.ends(Fraction(LEVEL))) for one in estimates_of_all)
        one, other = sides(released_ends), sides(estimated_ends)
        if name == "three quantiles":
            values, lows, highs = map(np.array, other)
            lows, highs = np.minimum.accumulate(lows[::-1])[::-1], np.maximum.accumulate(highs)
            other = [np.sort(values).tolist(), lows.tolist(), highs.tolist()]
        assert one == other


def sides(numbers: Iterator[tuple[Any, Any, Any]]) -> list[list[float]]:
    """All numbers, and all lower and all upper ends."""
    return [np.hstack(side).tolist() for side in zip(*numbers, strict=True)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", EXACT)
def test_an_exact_interval_holds_the_truth_in_95_to_99_of_100_releases(name, relation):
    call, held, runs = EXACT[name]
    found = hits(call, held, relation, runs)
    check_at_least(found)
    check_at_most(found)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", AT_LEAST)
def test_an_interval_holds_the_truth_in_at_least_95_of_100_releases(name, relation):
    call, held, runs = AT_LEAST[name]
    check_at_least(hits(call, held, relation, runs))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("function", [discreet.mean_and_std, discreet.summary])
def test_every_part_of_a_joint_release_is_held_in_at_least_95_of_100(function, relation):
    parts = 2 if function is discreet.mean_and_std else 6
    found = hits(function, all_parts, relation, 20)
    for part in range(parts):
        check_at_least([cell[part::parts] for cell in found])


def large(x: np.ndarray) -> np.ndarray:
    """Whether each value exceeds 0.3, and which are missing."""
    return np.where(np.isnan(x), np.nan, x > 0.3)


HOLES: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], Any], int]] = {
    "sum": (discreet.sum, np.nansum, 70),
    "mean": (discreet.mean, np.nanmean, 70),
    "proportion": (
        lambda x, bounds, **given: discreet.proportion(large(x), **given),  # noqa: ARG005
        lambda x: np.nanmean(large(x)),
        70,
    ),
    "variance": (discreet.variance, np.nanvar, 40),
    "median": (discreet.median, lambda x: ranked(x[~np.isnan(x)], 0.5), 40),
    "count of a summary": (
        lambda x, **given: discreet.summary(x, **given).count,
        lambda x: (~np.isnan(x)).sum(),
        20,
    ),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", HOLES)
def test_where_values_are_missing_an_interval_holds_the_truth_of_the_others(name, relation):
    call, truth, runs = HOLES[name]
    check_at_least(hits(call, holds(truth), relation, runs, ["holes"]))


def test_intervals_at_90_and_at_99_99_percent_are_caught():
    """The control: exact intervals of another confidence than they are tested for."""
    for other, check in (("0.9", check_at_least), ("0.9999", check_at_most)):
        found = hits(
            discreet.sum,
            lambda release, x, _, level=other: within(release.interval(level), x.sum()).tolist(),
            "change-one",
            250,
        )
        with pytest.raises(AssertionError):
            check(found)
