"""Integers fetched through the engine beside the same clamped aggregates in plain DuckDB, in one
run on one file.

Grouped count and sum over Parquet, 3,143 keys, once as texts and once as integers; and max_rows
where no unit has more rows than that, beside the plain aggregates and one hash aggregation of the
units. The two take turns; the figure is the ratio of their best times.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from bench.measure import fastest, table
from discreet.ask.expression import Column
from discreet.ask.query import Group
from discreet.calibrate.grid import value_grid
from discreet.engines.base import OnGrid, Request, Rows, Total
from discreet.engines.duckdb import DuckDB

ROWS = 5_000_000
KEYS = 3_143
ROUNDS = 7
PER_UNIT = 3

_MAKE = """COPY (
    SELECT 'county ' || (hash(i) % {keys}) AS county, (hash(i + 1) % {keys})::INTEGER AS fips,
        (hash(i + 2) % 1000000) / 8000.0::DOUBLE AS age, i // {per_unit} AS person
    FROM range({rows}) AS t(i)
) TO '{file}' (FORMAT parquet)"""
_PLAIN = "SELECT {key}, count(*), sum(least(greatest(age, 0), 120)) FROM rows GROUP BY {key}"
_UNITS = "SELECT count(*) FROM (SELECT person FROM rows GROUP BY person HAVING count(*) > 3)"


def works(file: Path) -> dict[str, Callable[[], Any]]:
    """Each piece of work by its name."""
    engine, relation = DuckDB(file), duckdb.connect().read_parquet(str(file))
    value = OnGrid(Column("age", "number"), value_grid((Fraction(0), Fraction(120)), bits=30), None)
    county = Group(
        "county", Column("county", "text"), tuple(f"county {index}" for index in range(KEYS))
    )
    fips = Group("fips", Column("fips", "number"), tuple(Fraction(index) for index in range(KEYS)))
    measures = (Rows(), Total(value))
    limited = Request(measures, (county,), unit="person", max_rows=PER_UNIT)
    return {
        "plain, texts": (
            lambda: relation.query("rows", _PLAIN.format(key="county")).to_arrow_table()
        ),
        "texts": lambda: engine.fetch(Request(measures, (county,))),
        "plain, integers": (
            lambda: relation.query("rows", _PLAIN.format(key="fips")).to_arrow_table()
        ),
        "integers": lambda: engine.fetch(Request(measures, (fips,))),
        "plain, units": lambda: relation.query("rows", _UNITS).to_arrow_table(),
        "max_rows": lambda: engine.fetch(limited),
    }


def scan(rows: int = ROWS, rounds: int = ROUNDS) -> list[list[str]]:
    """For each piece of work its milliseconds, those of plain DuckDB, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.parquet"
        duckdb.connect().execute(_MAKE.format(keys=KEYS, per_unit=PER_UNIT, rows=rows, file=file))
        times = fastest(works(file), rounds)
    plain = {
        "texts": times["plain, texts"],
        "integers": times["plain, integers"],
        "max_rows": times["plain, texts"] + times["plain, units"],
    }
    return [
        [
            name,
            f"{times[name] * 1000:.0f} ms",
            f"{beside * 1000:.0f} ms",
            f"{times[name] / beside:.2f}",
        ]
        for name, beside in plain.items()
    ]


def main() -> None:
    title = f"Count and sum by {KEYS:,} keys over {ROWS:,} rows of Parquet"
    print(table(title, ["work", "fetch", "plain DuckDB", "ratio"], scan()))


if __name__ == "__main__":
    main()
