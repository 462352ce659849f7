"""The figure of a report: every table of one and two columns is nearer together than one by one."""

import math

import pytest

from discreet import InvalidParameter
from discreet.show.figures.together import together
from released import data_in


def test_every_table_of_a_census_is_nearer_together():
    rows = data_in(together())
    errors = {
        name: {row["table"]: row["error"] for row in rows if row["series"] == name}
        for name in ("one by one", "together")
    }
    assert len(errors["together"]) == 21
    assert set(errors["one by one"].values()) == {math.sqrt(2) * 21}
    assert max(errors["together"].values()) <= 20.5
    assert math.sqrt(sum(error**2 for error in errors["together"].values()) / 21) <= 15.2


def test_errors_fall_with_epsilon():
    one, two = (data_in(together(epsilon=epsilon, sizes={"a": 2, "b": 3})) for epsilon in (1, 2))
    assert [row["error"] / 2 for row in one] == [row["error"] for row in two]


@pytest.mark.parametrize("sizes", [{}, {"a": 2}, {str(number): 2 for number in range(9)}])
def test_too_few_or_too_many_columns_are_refused(sizes):
    with pytest.raises(InvalidParameter, match="sizes must name 2 to 8 columns with their cells"):
        together(sizes=sizes)
