"""Whole reports: errors of all tables together and one by one, coverage, rows, and the time of
plan, fit and scan.

Where `opendp[mbi]` is installed, also OpenDP's contingency tables of the same report, one release,
which takes minutes. It wants an older polars than discreet is tested with: give it a Python of its
own, `pip install "opendp[mbi]" -e ".[all]"`.
"""

from __future__ import annotations

import math
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from bench.measure import table as markdown
from discreet import Policy, Study

RELEASES, ROWS, SCANNED = 400, 48_842, 5_000_000
ADULT = {"work": 9, "education": 7, "race": 5, "sex": 2, "age": 6, "pay": 2}
WARDS = {"sex": 2, "ward": 18, "month": 50}
SIX = [(), ("sex",), ("ward",), ("month",), ("sex", "ward"), ("sex", "month")]
FOUR = [(), ("sex",), ("ward",), ("month",)]


def tables(names: Any, *sizes: int) -> list[tuple[str, ...]]:
    return [chosen for size in sizes for chosen in combinations(names, size)]


def select(columns: tuple[str, ...], number: str) -> str:
    by = f" GROUP BY {', '.join(columns)}" if columns else ""
    return f"SELECT {', '.join([*columns, number + ' AS n'])} FROM data{by}"


REPORTS: list[tuple[str, dict[str, int], list[tuple[str, ...]], list[tuple[str, ...]], str]] = [
    ("Adult, all 1- and 2-way tables", ADULT, tables(ADULT, 1, 2), [], "15.2, worst 20.5"),
    ("2 × 18 × 50, up to 2-way", WARDS, tables(WARDS, 0, 1, 2), [], "6.5"),
    ("2 × 18 × 50, six counts, four means", WARDS, SIX, FOUR, "6.6"),
]


def data(domain: dict[str, int], rows: int, seed: int = 1) -> pa.Table:
    """Skewed and dependent columns."""
    rng = np.random.default_rng(seed)
    cells = math.prod(domain.values())
    drawn = rng.choice(cells, rows, p=rng.dirichlet(np.full(cells, 0.2)))
    columns = dict(zip(domain, np.unravel_index(drawn, tuple(domain.values())), strict=True))
    return pa.table(
        {
            **{name: column.astype(str) for name, column in columns.items()},
            "x": rng.beta(2, 5, rows),
        }
    )


def study_of(source: pa.Table, domain: dict[str, int], folder: str) -> Study:
    """The last key is the label of all others, so that every row has a cell."""
    keys = {
        name: {"keys": [str(k) for k in range(size - 1)], "other": str(size - 1)}
        for name, size in domain.items()
    }
    columns = {**keys, "x": {"bounds": [0, 1], "missing": 0}}
    policy = Policy(
        source=source, columns=columns, epsilon=10_000, version="1", neighbors="add-remove"
    )
    return Study(policy, ledger=Path(folder) / "study.ledger")


def exact_cells(source: pa.Table, domain: dict[str, int], columns: list[str], of: str) -> Any:
    """The exact table, with an axis for each column."""
    weights = source["x"].to_numpy() if of == "mean" else np.ones(source.num_rows)
    if not columns:
        return np.array(weights.sum())
    places = [source[name].to_numpy(zero_copy_only=False).astype(np.int64) for name in columns]
    found = np.zeros([domain[name] for name in columns])
    np.add.at(found, tuple(places), weights)
    return found


def errors(source: pa.Table, domain: dict[str, int], counts: Any, means: Any) -> list[str]:
    """The errors of the tables; of means, those of the sums of shares that they rest on, in rows."""
    wanted = {"_".join(("count", *t)): select(t, "count(*)") for t in counts}
    wanted |= {"_".join(("mean", *t)): select(t, "avg(x)") for t in means}
    squares: dict[str, list[float]] = {name: [] for name in wanted}
    covered, at_once, rows, fitted = [], [], [], math.inf
    with tempfile.TemporaryDirectory() as folder:
        study = study_of(source, domain, folder)
        study.report({"first": select((), "count(*)")}, epsilon=1)  # what is imported once
        begun = time.perf_counter()
        plan = study.report(wanted, epsilon=1)
        planned = time.perf_counter() - begun
        together = study.report(wanted, epsilon=1, simultaneous=True)
        secret, reach, wider = plan.fetched(), _reaches(plan), _reaches(together)
        exact = {table.name: _exact(table, source, domain) for table in plan.layout.tables}
        for _ in range(RELEASES):
            columns = plan.design.noisy(secret, plan.terms, plan.epsilon)
            begun = time.perf_counter()
            fit = plan.design.fit(columns, None)
            found = {
                t.name: fit.table(t.levels(plan.axes, t.numbers[0])) for t in plan.layout.tables
            }
            fitted = min(fitted, time.perf_counter() - begun)
            at_once.append(True)
            for table in plan.layout.tables:
                error = _cells(table, *found[table.name]) - exact[table.name]
                squares[table.name].append(float((error**2).mean()))
                if table.numbers[0].statistic == "count":
                    covered.append(float((np.abs(error) <= reach[table.name]).mean()))
                    at_once[-1] &= bool((np.abs(error) <= wider[table.name]).all())
        if not means:
            releases = (
                study.report(wanted, epsilon=f"1.{number:09d}").release()
                for number in range(RELEASES // 20)
            )
            rows = [_rows_error(report, source, domain, counts) for report in releases]
    each = [math.sqrt(float(np.mean(values))) for values in squares.values()]
    return [
        f"{math.sqrt(2) * len(wanted):.1f}",
        f"{np.mean(each):.2f}",
        f"{max(each):.1f}",
        f"{100 * np.mean(covered):.1f} %",
        f"{100 * np.mean(at_once):.1f} %",
        f"{np.sqrt(np.mean(np.square(rows), axis=0)).mean():.2f}" if rows else "",
        f"{len(plan.measured)}",
        f"{planned:.2f} s",
        f"{1000 * fitted:.0f} ms",
    ]


def _reaches(plan: Any) -> dict[str, float]:
    return {table.name: plan.reach(table, table.numbers[0]) for table in plan.layout.tables}


def _exact(table: Any, source: pa.Table, domain: dict[str, int]) -> Any:
    names = [group.of.name for group in table.query.groups]
    return exact_cells(source, domain, names, table.numbers[0].statistic)


def _cells(table: Any, numerators: Any, denominator: int) -> Any:
    """The cells of a table, of a mean those of its first half, with the axes of its group columns
    in their order.
    """
    number = table.numbers[0]
    if number.statistic == "mean":
        numerators = np.take(numerators, [0], axis=number.attribute)
    cells = np.asarray(numerators, np.float64) / denominator
    indices = [index for index, _ in table.groups]
    cells = cells.reshape([cells.shape[index] for index in sorted(indices)])
    return cells.transpose([sorted(indices).index(index) for index in indices])


def _rows_error(report: Any, source: pa.Table, domain: dict[str, int], counts: Any) -> list[float]:
    """Of each table of the rows that reproduce the report."""
    rows, found = report.rows(), []
    for table in counts:
        ours, theirs = (exact_cells(one, domain, list(table), "count") for one in (rows, source))
        found.append(math.sqrt(float(np.mean((ours - theirs) ** 2))))
    return found


def scan() -> list[list[str]]:
    """The time of the one statement of a report, beside plain GROUPING SETS of the tables that are
    asked for.
    """
    source, found = data(ADULT, SCANNED), []
    wanted = tables(ADULT, 1, 2)
    with tempfile.TemporaryDirectory() as folder:
        pa.parquet.write_table(source, path := f"{folder}/data.parquet")
        connection = duckdb.connect()
        connection.execute(f"CREATE VIEW data AS SELECT * FROM '{path}'")
        sets = ", ".join(f"({', '.join(t)})" for t in wanted)
        plain = f"SELECT {', '.join(ADULT)}, count(*) FROM data GROUP BY GROUPING SETS ({sets})"
        study = study_of(path, ADULT, folder)  # type: ignore[arg-type]
        best = {"plain": math.inf, "ours": math.inf}
        for number in range(5):
            begun = time.perf_counter()
            connection.execute(plain).fetchall()
            best["plain"] = min(best["plain"], time.perf_counter() - begun)
            plan = study.report(
                {"_".join(t): select(t, "count(*)") for t in wanted}, epsilon=f"1.{number:09d}"
            )
            begun = time.perf_counter()
            plan.release()
            best["ours"] = min(best["ours"], time.perf_counter() - begun)
    found.append(
        [
            f"{SCANNED:,} rows, 21 tables",
            f"{best['plain']:.2f} s",
            f"{best['ours']:.2f} s",
            f"{best['ours'] / best['plain']:.2f} ×",
        ]
    )
    return found


def contingency() -> list[str] | None:
    """The errors of OpenDP's tables of the first report, mean and worst, and the time; None where
    it has no mbi.
    """
    try:
        import mbi  # noqa: F401
        import opendp.prelude as dp
        import polars
    except ImportError:
        return None
    dp.enable_features("contrib")
    source, wanted = data(ADULT, ROWS), tables(ADULT, 1, 2)
    keys = {name: [str(key) for key in range(size)] for name, size in ADULT.items()}
    begun = time.perf_counter()
    context = dp.Context.compositor(
        data=polars.from_arrow(source).select(list(ADULT)).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
    )
    algorithm = dp.mbi.Fixed(queries=[dp.mbi.Count(by=chosen) for chosen in wanted])
    released = (
        context.query()
        .select(list(ADULT))
        .contingency_table(keys=keys, algorithm=algorithm)
        .release()
    )
    seconds, each = time.perf_counter() - begun, []
    for chosen in wanted:
        exact = exact_cells(source, ADULT, list(chosen), "count")
        # without missing
        cells = np.asarray(released.project(chosen))[tuple(slice(size) for size in exact.shape)]
        each.append(math.sqrt(float(((cells - exact) ** 2).mean())))
    return [f"{np.mean(each):.1f}", f"{max(each):.1f}", f"{seconds:.0f} s"]


def main() -> None:
    lines = []
    for name, domain, counts, means, goal in REPORTS:
        lines.append([name, *errors(data(domain, ROWS), domain, counts, means), goal])
    headings = [
        "report",
        "one by one",
        "together",
        "worst table",
        "covered",
        "all at once",
        "rows",
        "sets",
        "plan",
        "fit",
        "goal",
    ]
    print(markdown("Whole reports: errors at ε = 1, in rows", headings, lines))
    print(
        markdown(
            "Whole reports: release beside plain GROUPING SETS",
            ["data", "plain", "discreet", "ratio"],
            scan(),
        )
    )
    theirs = contingency()
    if theirs is not None:
        print(
            markdown(
                "OpenDP's contingency tables of Adult's columns",
                ["together", "worst table", "time"],
                [theirs],
            )
        )


if __name__ == "__main__":
    main()
