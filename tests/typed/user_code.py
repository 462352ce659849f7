"""What a user writes, with the types that a checker must see: `make check` reads it, and a test
runs it.

A line with `type: ignore` is a slip that a checker must find; strict mypy says so if it does not.
"""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import discreet
from discreet import Answer, Count, Histogram, Mean, Plan, Policy, Release, Releases, Study


def releases() -> list[Release | Releases]:
    """Every function of a column."""
    ages: NDArray[np.int64] = np.arange(100)
    mean = discreet.mean(ages, bounds=(0, 120), epsilon="0.5")
    assert_type(mean, Release)
    assert_type(mean.value, float)
    assert_type(mean.epsilon, Fraction)
    assert_type(f"{mean:.1f}", str)
    assert_type(Release.from_json(mean.to_json()), Release)
    both = discreet.mean_and_std([1.5, 2.5, None], bounds=[0, 10], epsilon=Fraction(1, 2))
    assert_type(both, Releases)
    assert_type(both["mean"], Release)
    towns = discreet.value_counts(
        ["Ash", "Elm"], keys=["Ash", "Elm"], other="elsewhere", epsilon=0.5
    )
    days = discreet.histogram([date(2020, 1, 1)], keys=[date(2020, 1, 1)], epsilon=1)
    bins = discreet.histogram(ages, bins=[0, 18, 65], epsilon=1, neighbors="add-remove")
    assert_type(bins.edges, tuple[float, ...])
    count = discreet.count(["a", None], epsilon=1)
    total = discreet.sum(ages, bounds=(0, 120), epsilon=1) + 3
    assert_type(total, Release)
    return [mean, both, towns, days, bins, count, total]


def answers(frame: Any, folder: Path) -> Answer:
    """A study of a frame."""
    with Study.from_frame(
        frame, epsilon=1, bounds={"age": (0, 120)}, keys={"town": ["Ash", "Elm"]}
    ) as study:
        plan = study.groupby("town").agg(people="count", age=("age", "mean")).plan(epsilon="0.5")
        assert_type(plan, Plan)
        answer = (
            study.where("age >= 18")
            .by("town")
            .ask(n=Count(), age=Mean("age"))
            .plan(epsilon="0.5")
            .release()
        )
        assert_type(answer, Answer)
        assert_type(len(answer), int)
        for row in answer:
            assert row in answer
        assert_type(answer.save(folder / "towns.csv"), Path)
        return answer


def policies() -> list[Policy]:
    """Policies in Python."""
    ages = Policy(source="people.csv", epsilon="1", columns={"age": {"bounds": (0, 120)}})
    return [
        ages,
        Policy(
            source="people.csv",
            epsilon=1,
            columns={"day": {"bounds": (date(2020, 1, 1), "2021-01-01")}},
        ),
    ]


def slips() -> None:
    """Never called: each line is refused by a checker, and would be at run time."""
    ages = [1, 2, 3]
    discreet.mean(ages, bounds=(0, 120))  # type: ignore[call-arg]
    discreet.mean(ages, bounds=(0, 120), epsilon=None)  # type: ignore[arg-type]
    discreet.mean(ages, bounds=120, epsilon=1)  # type: ignore[arg-type]
    discreet.mean(ages, bounds=(0, None), epsilon=1)  # type: ignore[arg-type]
    discreet.mean(ages, bounds=(0, 120), epsilon=1, neighbors="bounded")  # type: ignore[arg-type]
    discreet.mean(ages, bounds=(0, 120), epsilon=1, legder=None)  # type: ignore[call-arg]
    discreet.mean(ages, (0, 120), 1)  # type: ignore[call-arg]
    discreet.value_counts(ages, epsilon=1)  # type: ignore[call-arg]
    discreet.laplace_mechanism(3, sensitivity=1, epsilon=[1])  # type: ignore[arg-type]
    discreet.sensitivity.mean(n="many", bounds=(0, 1))  # type: ignore[arg-type]
    Policy(source="x.csv", epsilon=1, columns={"age": (0, 120)})  # type: ignore[dict-item]
    Study.from_frame(ages, epsilon=1, bounds=(0, 1))  # type: ignore[arg-type]
    _: Histogram = discreet.mean(ages, bounds=(0, 1), epsilon=1)  # type: ignore[assignment]
