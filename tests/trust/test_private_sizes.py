"""TRUST 19 and 20: where the number of people is private nothing uses it raw, and no grid or scale
moves with the data.

TRUST 19: all noisy integers are replaced by the same ones, whatever the data. Then everything that
is shown must be the same, too: whatever else of the data were used would show. The control asks
where the number of people is public.
"""

import contextlib
import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import discreet
from discreet.release import mechanism
from discreet.release.mechanism import NoisyColumn
from discreet.release.statistics import counts, families, moments
from studies import Paper, replayed, select, study_of

EPSILON = Fraction(1, 2)
ASKED = (
    "count(*), sum(age), avg(age), stddev(age), var_pop(age), avg(well), sum(pay), avg(pay),"
    " stddev_samp(pay)"
)
TABLES = {
    "nobody": [],
    "one": [{"age": 3, "pay": 1.0, "well": True, "place": "north"}],
    "some": [
        {"age": at % 11, "pay": at % 7 - 2.0, "well": at % 2 == 0, "place": "south"}
        for at in range(37)
    ],
    "missing": [{"age": None, "pay": math.nan, "well": None, "place": "west"}] * 20,
    "far": [{"age": 10**12, "pay": 1e300, "well": True, "place": "elsewhere"}] * 5,
}
CASES = [
    ("add-remove", ""),
    ("add-remove", " GROUP BY place"),
    ("add-remove", " WHERE age >= 2"),
    ("change-one", " WHERE age >= 2"),
    ("change-one", " GROUP BY place"),
]


@contextlib.contextmanager
def same_integers():
    """Every noisy integer is the same whatever the data: 1000 and a little more for each in turn."""
    real_columns = mechanism.noisy_columns

    def columns(*given):
        found = real_columns(*given)
        return [
            NoisyColumn(
                values=[one.step * (1000 + 7 * at) for _ in one.values],
                step=one.step,
                scale=one.scale,
            )
            for at, one in enumerate(found)
        ]

    with contextlib.ExitStack() as stack:
        for module in (counts, families, moments):
            stack.enter_context(mock.patch.object(module, "noisy_columns", columns))
        yield


def shown(rows, neighbors, clauses, asked=ASKED):
    """All that a study shows of these rows, when its noisy integers are given."""
    study = study_of(rows, Paper(), neighbors=neighbors, version="1")
    with same_integers():
        return study.sql(select(asked, clauses), epsilon=EPSILON).release().full_record


@pytest.mark.parametrize(("neighbors", "clauses"), CASES)
def test_a_study_shows_nothing_of_a_private_number_but_its_noisy_integers(neighbors, clauses):
    found = [shown(rows, neighbors, clauses) for rows in TABLES.values()]
    assert all(one == found[0] for one in found)


def test_control_where_the_number_is_public_it_is_seen():
    one, many = (shown(TABLES[name], "change-one", "", "count(*)") for name in ("one", "some"))
    assert one != many


COLUMNS = [[3.0], [1.0, 2.0, 3.0] * 9, [math.nan] * 4, [1e300, -1e300]]
STATISTICS = ["sum", "mean", "variance", "std", "mean_and_std"]


def array_shown(name, values, neighbors, **given):
    with same_integers():
        found = getattr(discreet, name)(
            np.array(values), bounds=(0, 10), epsilon=EPSILON, neighbors=neighbors, **given
        )
    parts = found.values() if name == "mean_and_std" else [found]
    return [(one.value, one.interval(), one.scale, one.step, one.sensitivity) for one in parts]


@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
@pytest.mark.parametrize("name", STATISTICS)
def test_an_array_shows_nothing_of_a_private_number_but_its_noisy_integers(name, neighbors):
    """Under change-one the number of those that are not missing is private, too; that of all is public."""
    most = max(map(len, COLUMNS)) if neighbors == "change-one" else 0
    columns = [values + [math.nan] * (most - len(values)) for values in COLUMNS]
    found = [array_shown(name, values, neighbors) for values in columns]
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("name", ["mean", "std"])
def test_control_a_public_number_moves_the_mean_and_the_std(name):
    found = [array_shown(name, values, "change-one", missing=0) for values in COLUMNS]
    assert found[0] != found[1]


RANKED = "count(*), sum(age), avg(pay), stddev(age), median(pay), max(age)"


@pytest.mark.parametrize("clauses", ["", " GROUP BY place", " WHERE well"])
@pytest.mark.parametrize("neighbors", ["add-remove", "change-one"])
def test_scales_steps_and_sizes_of_a_study_are_those_of_its_plan(neighbors, clauses):
    found = []
    for rows in TABLES.values():
        study = study_of(rows, Paper(), neighbors=neighbors, version="1")
        plan = study.sql(select(RANKED, clauses), epsilon=EPSILON)
        lines = [(line.name, line.sensitivity, line.scale, line.within) for line in plan.lines]
        found.append((lines, replayed(plan, study).public()))
    assert all(one == found[0] for one in found)


def grid_and_scale(name, values, **given):
    found = getattr(discreet, name)(values, epsilon=EPSILON, neighbors="add-remove", **given)
    return found.scale, found.step, found.sensitivity


@pytest.mark.parametrize("name", ["sum", "mean", "variance", "std"])
def test_scale_and_step_of_an_array_are_those_of_its_bounds(name):
    found = [grid_and_scale(name, np.array(values), bounds=(0, 10)) for values in COLUMNS]
    assert all(one == found[0] for one in found)


def test_control_bounds_that_are_taken_from_the_data_are_seen():
    found = [
        grid_and_scale("sum", np.array(values), bounds=(min(values), max(values) + 1))
        for values in ([1.0, 2.0], [1.0, 900.0])
    ]
    assert found[0] != found[1]
