"""Errors beside theory, the textbook and OpenDP, and the speed of the exact answers beside numpy's.

An error is the root mean square, over many runs, of the released number minus the exact statistic
of the same data: the noise alone, not the sampling of people. Every method gets the same data, the
same ε and the same relation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from math import hypot
from typing import Any

import numpy as np

import discreet
from bench.measure import fastest, table
from bench.peers import Answer, OpenDP
from discreet.draw.choice import Runs, choose
from discreet.release.statistics.ranks import VALUE_PART

SIZES = (10**3, 10**4)
EPSILONS = (Fraction(1), Fraction(1, 10))
RELATIONS = ("change-one", "add-remove")
SHAPES = ((2, 2), (2, 5), (2, 8))
DATA_SETS = 10
"""The runs are spread over so many data sets: where a quantile falls into a gap of one of them, its
error is larger.
"""
BINS = 20

Shape = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One data set of values in [0, 1], one ε, one relation."""

    shape: Shape = SHAPES[0]
    data: np.ndarray
    epsilon: Fraction
    neighbors: str

    @property
    def truths(self) -> np.ndarray:
        return self.data < 0.3

    @property
    def changed(self) -> bool:
        return self.neighbors == "change-one"

    @property
    def once(self) -> float:
        """√2/ε: the deviation of Laplace noise for Δ = 1."""
        return math.sqrt(2) / float(self.epsilon)

    def ask(self, statistic: str, *data: Any, **options: Any) -> Any:
        """What discreet releases."""
        found = getattr(discreet, statistic)(
            *data, epsilon=self.epsilon, neighbors=self.neighbors, **options
        )
        return found.value

    def near(self, statistic: str, *share: Any, **options: Any) -> Any:
        return self.ask(statistic, self.data, *share, bounds=(0, 1), **options)


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """How to ask for one statistic, what it truly is, and what its error should be to first order
    in 1/nε.
    """

    exact: Callable[[Case], Any]
    ours: Callable[..., Any]
    theory: Callable[[Case], float]
    peer: Callable[[OpenDP], Answer | None]
    textbook: tuple[str, ...] = ()
    """The relations in which the textbook's form is another one than ours, and exists."""
    runs: int = 2000
    """A root mean square over k runs of Laplace noise is itself off by √(5/4k): 2.5 % for 2000, 5.6
    % for 400.
    """


def whole(case: Case, sensitivity: int = 1) -> float:
    """The deviation of discrete Laplace noise."""
    return discreet.accuracy.root_mean_square_error(sensitivity / case.epsilon, law="discrete")


def ends(share: float, case: Case) -> float:
    """What the pair of sums loses under add-remove, at a mean of this share of the range."""
    return 1 if case.changed else hypot(share, 1 - share)


def variance_theory(case: Case) -> float:
    u, v = float(case.data.mean()), float(case.data.var())
    if case.changed:
        return case.once / case.data.size * 9 / 8 * hypot(0.5, 1 - 2 * u)
    return case.once / case.data.size * hypot(u * u - v, u * u - u - v, (1 - u) ** 2 - v)


def rank_theory(q: float, case: Case) -> float:
    """Laplace noise of scale 2/ε ranks (2·max(q, 1−q)/ε under add-remove), by the density at the
    quantile.
    """
    ranks = case.once * (2 if case.changed else 2 * max(q, 1 - q))
    return ranks / case.data.size * widening(case.shape, q)


@cache
def widening(shape: Shape, q: float) -> float:
    """How far the quantile moves per share of the ranks: 1/density, from a large sample."""
    below, above = np.quantile(people(10**6, shape, 0), [q - 0.01, q + 0.01])
    return float(above - below) / 0.02


def quantile(q: str, *, part: float = 1, **options: Any) -> Statistic:
    """By choice, with this part of ε for the value; the textbook adds noise for the whole range."""
    return Statistic(
        exact=lambda case: np.quantile(case.data, float(q), method="averaged_inverted_cdf"),
        ours=lambda case, **method: case.near("quantile", q, **options, **method),
        theory=lambda case: rank_theory(float(q), case) / part,
        peer=lambda peer: peer.quantile(float(q)) if part == 1 else None,  # OpenDP's has no bracket
        textbook=RELATIONS,
        runs=400,
    )


STATISTICS = {
    "count": Statistic(
        exact=lambda case: np.count_nonzero(case.truths),
        ours=lambda case: case.ask("count", case.truths),
        theory=whole,
        peer=OpenDP.count,
    ),
    "sum": Statistic(
        exact=lambda case: math.fsum(case.data),
        ours=lambda case: case.near("sum"),
        theory=lambda case: case.once,
        peer=OpenDP.sum,
    ),
    "mean": Statistic(
        exact=lambda case: math.fsum(case.data) / case.data.size,
        ours=lambda case, **method: case.near("mean", **method),
        theory=lambda case: case.once / case.data.size * ends(case.data.mean(), case),
        peer=OpenDP.mean,
        textbook=("add-remove",),
    ),
    "proportion": Statistic(
        exact=lambda case: case.truths.mean(),
        ours=lambda case: case.ask("proportion", case.truths),
        theory=lambda case: whole(case) / case.data.size * ends(case.truths.mean(), case),
        peer=OpenDP.proportion,
    ),
    "variance": Statistic(
        exact=lambda case: case.data.var(),
        ours=lambda case, **method: case.near("variance", **method),
        theory=variance_theory,
        peer=OpenDP.variance,
        textbook=("change-one",),
    ),
    "std": Statistic(
        exact=lambda case: case.data.std(),
        ours=lambda case, **method: case.near("std", **method),
        theory=lambda case: variance_theory(case) / (2 * case.data.std()),
        peer=OpenDP.std,
        textbook=("change-one",),
    ),
    "median": quantile("0.5", confidence=None),
    "median and bracket": quantile("0.5", part=float(VALUE_PART)),
    "quantile 0.9": quantile("0.9", confidence=None),
    f"histogram, {BINS} bins": Statistic(
        exact=lambda case: np.histogram(case.data, bins=BINS, range=(0, 1))[0],
        ours=lambda case: case.near("histogram", bins=BINS),
        theory=lambda case: whole(case, 2 if case.changed else 1),
        peer=lambda peer: peer.histogram(BINS),
    ),
}

GOALS = (
    ("std", 10**4, "change-one", 50),
    ("median", 10**3, "change-one", 300),
    ("median", 10**3 + 1, "change-one", 300),
    ("median and bracket", 10**3, "change-one", 300),
    ("median and bracket", 10**3 + 1, "change-one", 300),
    ("mean", 10**3, "add-remove", 2),
    ("mean", 10**4, "add-remove", 2),
)


def main() -> None:
    for n in SIZES:
        for epsilon in EPSILONS:
            print(errors(n, epsilon))
    print(goals())
    print(speeds())


def people(n: int, shape: Shape, seed: int) -> np.ndarray:
    """The same values in every run of the bench."""
    return np.random.default_rng(seed).beta(*shape, n)


def cases(n: int, epsilon: Fraction, neighbors: str, shape: Shape = SHAPES[0]) -> list[Case]:
    return [
        Case(shape=shape, data=people(n, shape, seed), epsilon=epsilon, neighbors=neighbors)
        for seed in range(DATA_SETS)
    ]


def error(statistic: Statistic, data_sets: list[Case], answer: Callable[[Case], Answer]) -> float:
    """The root mean square error over the data sets, the runs and the numbers of an answer."""
    squares = []
    for case in data_sets:
        release, exact = answer(case), statistic.exact(case)
        squares += [
            np.mean(np.square(np.asarray(release()) - exact))
            for _ in range(statistic.runs // DATA_SETS)
        ]
    return math.sqrt(np.mean(squares))


def errors(n: int, epsilon: Fraction) -> str:
    headings = [
        "statistic",
        "relation",
        "discreet",
        "theory",
        "of theory",
        "textbook",
        "gain",
        "OpenDP",
        "gain",
    ]
    rows = [
        row(name, statistic, cases(n, epsilon, relation))
        for name, statistic in STATISTICS.items()
        for relation in RELATIONS
    ]
    return table(f"Errors, n = {n:,}, ε = {float(epsilon):g}", headings, rows)


def row(name: str, statistic: Statistic, data_sets: list[Case]) -> list[str]:
    one = data_sets[0]
    ours = error(statistic, data_sets, partial(best, statistic))
    theory = math.sqrt(np.mean([statistic.theory(case) ** 2 for case in data_sets]))
    cells = [name, one.neighbors, f"{ours:.3g}", f"{theory:.3g}", f"{ours / theory:.2f}"]
    others = (
        partial(textbook, statistic) if one.neighbors in statistic.textbook else None,
        partial(opendp, statistic) if opendp(statistic, one) else None,
    )
    for other in others:
        found = error(statistic, data_sets, other) if other else None
        cells += [f"{found:.3g}", times(found / ours)] if found else ["", ""]
    return cells


def best(statistic: Statistic, case: Case) -> Answer:
    return partial(statistic.ours, case)


def textbook(statistic: Statistic, case: Case) -> Answer:
    return partial(statistic.ours, case, method="laplace")


def opendp(statistic: Statistic, case: Case) -> Answer | None:
    peer = OpenDP(case.data, case.truths, epsilon=float(case.epsilon), public_size=case.changed)
    return statistic.peer(peer)


def times(ratio: float) -> str:
    return f"{ratio:.2f} ×" if ratio < 20 else f"{ratio:,.0f} ×"


def goals() -> str:
    """What the estimators must gain over the textbook's forms, and do on three shapes of data."""
    rows = []
    for name, n, relation, goal in GOALS:
        found = [gain(STATISTICS[name], cases(n, Fraction(1), relation, shape)) for shape in SHAPES]
        rows.append(
            [
                name,
                f"{n:,}",
                relation,
                f"{goal} ×",
                *(f"{times(one)}{passed(one >= goal)}" for one in found),
            ]
        )
    headings = ["statistic", "n", "relation", "goal", *(f"beta{shape}" for shape in SHAPES)]
    return table("Gain over the textbook's form, ε = 1", headings, rows)


def gain(statistic: Statistic, data_sets: list[Case]) -> float:
    return error(statistic, data_sets, partial(textbook, statistic)) / error(
        statistic, data_sets, partial(best, statistic)
    )


def passed(reached: bool) -> str:
    return " ✓" if reached else " missed"


def speeds() -> str:
    """Ten million doubles: an exact answer and its noise beside numpy's plain one."""
    x, bins = np.random.default_rng(2021).beta(2, 2, 10**7), 10**6
    gaps, ones, first = np.abs(np.arange(10**6) - 400_000), np.ones(10**6, np.int64), np.array([0])
    cells = Runs(exponents=gaps, sizes=ones, rows=first, cell=lambda runs, _: runs)
    found = fastest(
        {
            "numpy.mean": lambda: np.mean(x),
            "mean": lambda: discreet.mean(x, bounds=(0, 1), epsilon=1),
            "numpy.std": lambda: np.std(x),
            "std": lambda: discreet.std(x, bounds=(0, 1), epsilon=1),
            "numpy.median": lambda: np.median(x),
            "median": lambda: discreet.median(x, bounds=(0, 1), epsilon=1),
            "choose": lambda: choose(cells, Fraction(1, 2)),
        },
        rounds=25,
    ) | fastest(
        {
            "numpy.histogram": lambda: np.histogram(x, bins=bins, range=(0, 1)),
            "histogram": lambda: discreet.histogram(x, bins=bins, bounds=(0, 1), epsilon=1),
        },
        rounds=5,
    )
    rows = []
    for name, label, goal in (
        ("mean", "mean", 5),
        ("std", "std", None),
        ("median", "median and bracket", None),
        ("histogram", "histogram, 10⁶ bins", 2),
    ):
        ours, plain = found[name], found[f"numpy.{name}"]
        wanted = "" if goal is None else f"{goal} × at most{passed(ours <= goal * plain)}"
        rows.append(
            [
                label,
                f"{ours * 1e3:.3g} ms",
                f"{plain * 1e3:.3g} ms",
                f"**{ours / plain:.2f} ×**",
                wanted,
            ]
        )
    rows.append(["choice among 10⁶ cells", f"{found['choose'] * 1e3:.3g} ms", "", "", ""])
    return table(
        "Speed, 10⁷ doubles", ["call", "discreet", "numpy", "discreet / numpy", "goal"], rows
    )


if __name__ == "__main__":
    main()
