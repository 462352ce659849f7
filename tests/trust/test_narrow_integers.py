"""TRUST 7 and 12: a column of few bits, with bounds that span all of them, raises for no row."""

import pyarrow as pa
import pytest

from discreet import Policy, Study
from discreet.engines.base import OnGrid, Request, Total
from discreet.engines.duckdb import DuckDB
from studies import Paper

LIMITS = {
    "int8": (pa.int8(), -128, 127),
    "int16": (pa.int16(), -32768, 32767),
    "int32": (pa.int32(), -(2**31), 2**31 - 1),
    "int64": (pa.int64(), -(2**63), 2**63 - 1),
    "uint8": (pa.uint8(), 0, 255),
    "uint16": (pa.uint16(), 0, 2**16 - 1),
    "uint32": (pa.uint32(), 0, 2**32 - 1),
    "uint64": (pa.uint64(), 0, 2**64 - 1),
}


WIDE = {  # bounds that a column's own type just holds, or does not
    "int8": [(-128, 127), (-30_000, 30_000)],
    "int16": [(-32768, 32767), (-(2**30), 2**30)],
    "uint8": [(-128, 127), (-30_000, 30_000)],
    "uint16": [(-(2**30), 2**30)],
}
CASES = [
    (kind, bounds)
    for kind in LIMITS
    for bounds in [(-100, 100), *WIDE.get(kind, [(-(2**30), 2**30)])]
]


@pytest.mark.parametrize(("kind", "bounds"), CASES)
def test_the_largest_and_the_smallest_value_are_answered_like_any_other(kind, bounds):
    made, smallest, largest = LIMITS[kind]
    for value in (smallest, largest):
        table = pa.table({"x": pa.array([0] * 9 + [value], made)})
        policy = Policy(source=table, epsilon=1000, columns={"x": {"bounds": bounds}})
        study = Study(policy, ledger=Paper(1000))
        answer = study.sql(
            "SELECT sum(x) AS s, stddev(x), median(x) FROM data", epsilon=900
        ).release()
        exact = min(max(value, bounds[0]), bounds[1])
        low, high = answer.interval("s")[0]
        assert low - (bounds[1] - bounds[0]) / 20 <= exact <= high + (bounds[1] - bounds[0]) / 20


def test_the_integer_of_a_narrow_column_is_exact():
    from fractions import Fraction

    from discreet.ask.expression import Column
    from discreet.calibrate.grid import value_grid

    grid = value_grid((Fraction(-100), Fraction(100)), bits=30, whole=True)
    engine = DuckDB(pa.table({"x": pa.array([100, -128, 127, None], pa.int8())}))
    [[total]] = engine.fetch(Request((Total(OnGrid(Column("x", "number"), grid, None)),))).reveal()
    assert total == 200 + 0 + 200
