"""Names of columns that would hide one another, and numbers that no answer could hold, are refused before any spend."""

import pytest

from asking import POLICY, SCHEMA
from discreet import Count, Histogram, InvalidParameter, QueryRefused, Sum
from discreet.ask.questions import build
from discreet.ask.sql import parse


@pytest.mark.parametrize("end", ["_low", "_high"])
def test_a_name_of_the_end_of_an_interval_is_refused(end):
    with pytest.raises(QueryRefused, match=f"'n{end}' is the name of an interval end of 'n'"):
        parse(" ".join(["SELECT count(*) AS n, sum(age) AS", f"n{end}", "FROM t"]), POLICY, SCHEMA)
    with pytest.raises(QueryRefused, match=f"'n{end}' is the name of an interval end of 'n'"):
        build(POLICY, SCHEMA, where=(), by=(), ask={"n": Count(), f"n{end}": Sum("age")})


@pytest.mark.parametrize("clause", ["sum(age) * 1e400", "sum(age) - 1e301"])
def test_a_number_beyond_the_doubles_is_refused(clause):
    with pytest.raises(QueryRefused, match="at most 1e300"):
        parse(" ".join(["SELECT", clause, "AS x FROM t"]), POLICY, SCHEMA)
    with pytest.raises(QueryRefused, match="at most 1e300"):
        parse("SELECT count(*) AS n FROM t HAVING count(*) > 1e400", POLICY, SCHEMA)


def test_bins_that_are_no_list_are_refused():
    with pytest.raises(InvalidParameter, match="bins must be at least two edges"):
        build(POLICY, SCHEMA, where=(), by=(), ask={"h": Histogram("age", 1e9)})
