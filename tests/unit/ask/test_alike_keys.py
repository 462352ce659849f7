"""Keys that engines or readers cannot tell apart are refused, before anything is spent."""

import pandas as pd
import pytest

import discreet
from discreet import InvalidParameter, QueryRefused, Study

ROWS = pd.DataFrame({"n": [1, 2, 3], "f": [0.1, 0.2, 0.3], "t": ["1", "2", "3"], "b": [True, False, True]})
ONE_NUMBER = [
    ("n", [2**53, 2**53 + 1]),
    ("n", [-(2**63), -(2**63) + 1]),
    ("f", ["0.3", "0.30000000000000001"]),
    ("f", ["1e-150", "2e-150"]),
    ("f", ["1e150", "1e160"]),
    ("t", [2**53, 2**53 + 1]),
]


@pytest.mark.parametrize(("column", "keys"), ONE_NUMBER)
def test_keys_that_are_one_double_are_refused_before_the_spend(column, keys):
    question = f"SELECT {column}, count(*) AS c FROM data GROUP BY {column}"  # noqa: S608 - of names above
    with Study.from_frame(ROWS, epsilon=2, keys={column: keys}) as study:
        for asked in (lambda: study.sql(question, epsilon=1), lambda: study.report({"a": question}, epsilon=1)):
            with pytest.raises(QueryRefused, match=f"GROUP BY {column} has keys that are equal as 64-bit floats"):
                asked().release()
        assert study.spent == 0


def test_large_keys_that_differ_are_groups():
    large = pd.DataFrame({"n": [2**60] * 5 + [2**61]})
    with Study.from_frame(large, epsilon=10**6, keys={"n": [2**60, 2**61]}) as study:
        answer = study.sql("SELECT n, count(*) AS c FROM data GROUP BY n", epsilon=10**5).release()
        assert [round(number) for number in answer["c"]] == [5, 1]


@pytest.mark.parametrize(
    ("column", "keys", "other"), [("n", [1, 2], "1"), ("f", ["0.5", "1"], "0.5"), ("b", [True], "True")]
)
def test_other_is_not_what_a_key_is_shown_as(column, keys, other):
    with pytest.raises(InvalidParameter, match=r"other.* must not be one of the keys"):
        Study.from_frame(ROWS, epsilon=1, keys={column: keys}, other={column: other})
    with pytest.raises(InvalidParameter, match="other must not be one of the keys"):
        discreet.histogram(ROWS[column], keys=keys, other=other, epsilon=1)


@pytest.mark.parametrize("columns", [None, 1])
def test_groupby_takes_names(columns):
    with Study.from_frame(ROWS, epsilon=1) as study, pytest.raises(QueryRefused, match="groupby takes names"):
        study.groupby(columns)


@pytest.mark.parametrize("given", [("n",), ("n", "mean", "sum"), ()])
def test_agg_takes_a_column_and_a_statistic(given):
    with Study.from_frame(ROWS, epsilon=1) as study, pytest.raises(QueryRefused, match="a column and a statistic"):
        study.agg(x=given)
