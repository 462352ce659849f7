"""Intervals of 95 % hold at least 95 % of the time, and where they are exact at most 99 %, for
every statistic.

One table is read once; only the noise is drawn anew, for all rounds at once. A run of N intervals
fails by chance with probability below 10⁻⁸ for each assertion, if the coverage is 0.95 or more (and
0.99 or less): the bounds are quantiles of the binomial law. With N = 20,000 a coverage of 0.94 or
of 0.997 is caught with probability above 0.99, with N = 500 one of 0.85; more than 0.99 is only
looked for with N = 20,000. One group alone is what `test_interval_coverage` has: arrays are
released by the same designs.

    count, sum, mean, proportion     exact, but for a step: between 0.95 and 0.99
    variance, std                    half of the error for the mean, half for the rest: between 0.95
                                     and 1
    quantiles                        a guarantee for every table, so wide on most: between 0.95 and
                                     1
    minimum, maximum                 the bounds: no private method can know what lies beyond the
                                     last record
"""

import numpy as np
import pytest
from scipy.stats import binom

from copies import releases_of
from studies import Paper, select, study_of

CHANCE = 1e-8
GROUPS, ROUNDS = 2000, 10
ALONE = 500

AGES = [0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 7, 8, 10, 10]
PAYS = (np.linspace(-2.9, 4.7, len(AGES)) ** 3 / 30).tolist()
WELL = [at % 3 == 0 for at in range(len(AGES))]
MEMBERS = [
    {"age": age, "pay": pay, "well": well} for age, pay, well in zip(AGES, PAYS, WELL, strict=True)
]

QUESTIONS = {
    "count(*)": ("exact", len(AGES)),
    "count(*) FILTER (WHERE well)": ("exact", sum(WELL)),
    "sum(age)": ("exact", sum(AGES)),
    "sum(pay)": ("exact", sum(PAYS)),
    "avg(age)": ("exact", np.mean(AGES)),
    "avg(pay)": ("exact", np.mean(PAYS)),
    "avg(well)": ("exact", np.mean(WELL)),
    "var_pop(age)": ("wide", np.var(AGES)),
    "variance(pay)": ("wide", np.var(PAYS, ddof=1)),
    "stddev_pop(age)": ("wide", np.std(AGES)),
    "median(age)": ("wide", np.median(AGES)),
    "quantile(pay, 0.9)": ("wide", sorted(PAYS)[16]),
    "min(age)": ("wide", min(AGES)),
    "max(pay)": ("wide", max(PAYS)),
}
CROWD = 40
"""How many times the members are in a table without groups: some of its intervals need a number of
rows to be exact.
"""


def least(runs: int) -> int:
    """Below this many hits a coverage of 0.95 falls with probability 10⁻⁸ at most."""
    return int(binom.ppf(CHANCE, runs, 0.95))


def most(runs: int) -> int:
    """Above this many hits a coverage of 0.99 rises with probability 10⁻⁸ at most."""
    return int(binom.isf(CHANCE, runs, 0.99))


def hits(plan, rounds: int, truth) -> tuple[int, int]:
    """(intervals that hold the truth, all)."""
    [(_, low, high)] = releases_of(plan, rounds).values()
    return int(((low <= truth) & (truth <= high)).sum()), low.size


def judge(kind: str, held: int, runs: int) -> bool:
    """Whether so many hits fit what is promised."""
    return held >= least(runs) and (kind == "wide" or held <= most(runs))


@pytest.mark.parametrize("neighbors", ["change-one", "add-remove"])
@pytest.mark.parametrize("asked", QUESTIONS)
def test_intervals_of_groups_hold_as_often_as_they_say(asked, neighbors):
    kind, truth = QUESTIONS[asked]
    ranked = asked.split("(")[0] in ("median", "quantile", "min", "max")
    groups, rounds = (100, 5) if ranked else (GROUPS, ROUNDS)
    rows = [{**member, "level": level} for level in range(groups) for member in MEMBERS]
    study = study_of(
        rows, Paper(), neighbors=neighbors, columns={"level": {"keys": f"0..{groups - 1}"}}
    )
    held, runs = hits(study.sql(select(asked, "GROUP BY level"), epsilon="0.7"), rounds, truth)
    assert judge(kind, held, runs), (held / runs, runs)


@pytest.mark.parametrize(
    "asked", ["sum(age)", "avg(pay)", "var_pop(age)", "stddev(pay)", "median(age)"]
)
def test_intervals_where_the_size_is_public_hold_as_often_as_they_say(asked):
    kind, _ = QUESTIONS.get(asked, ("wide", 0))
    truth = {
        "sum(age)": sum(AGES) * CROWD,
        "avg(pay)": np.mean(PAYS),
        "var_pop(age)": np.var(AGES),
        "stddev(pay)": np.std(PAYS * CROWD, ddof=1),
        "median(age)": np.median(AGES),
    }[asked]
    columns = {"age": {"missing": 0}, "pay": {"missing": 0}}
    study = study_of(MEMBERS * CROWD, Paper(), columns=columns)
    held, runs = hits(study.sql(select(asked), epsilon="0.7"), ALONE, truth)
    assert judge(kind, held, runs), (held / runs, runs)


def test_simultaneous_intervals_hold_all_together():
    groups, rounds = 30, 800
    rows = [{**member, "level": level} for level in range(groups) for member in MEMBERS]
    study = study_of(rows, Paper(), columns={"level": {"keys": f"0..{groups - 1}"}})
    plan = study.sql(select("count(*), avg(age)", "GROUP BY level"), epsilon=1, simultaneous=True)
    truths, titles = {"count(*)": len(AGES), "avg(age)": np.mean(AGES)}, plan.titles()
    held = [
        ((low <= truths[titles[name]]) & (truths[titles[name]] <= high)).reshape(rounds, groups)
        for name, (_, low, high) in releases_of(plan, rounds).items()
    ]
    together = np.hstack(held).all(axis=1).sum()
    assert together >= least(rounds), together / rounds


def test_control_intervals_that_are_a_little_too_narrow_or_too_wide_are_seen():
    rows = [{**member, "level": level} for level in range(GROUPS) for member in MEMBERS]
    study = study_of(rows, Paper(), columns={"level": {"keys": f"0..{GROUPS - 1}"}})
    found = {}
    for name, level in (("narrow", "0.93"), ("right", "0.95"), ("wide", "0.998")):
        plan = study.sql(select("avg(age)", "GROUP BY level"), epsilon="0.7", confidence=level)
        found[name] = judge("exact", *hits(plan, ROUNDS, np.mean(AGES)))
    assert found == {"narrow": False, "right": True, "wide": False}
