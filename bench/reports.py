"""Whole reports: errors of all tables together and one by one, coverage, rows, and the time of plan, fit and scan."""

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
from discreet.release.reports.allocation import allocated

RELEASES, ROWS, SCANNED = 40, 48_842, 5_000_000
ADULT = {"work": 9, "education": 7, "race": 5, "sex": 2, "age": 6, "pay": 2}
WARDS = {"sex": 2, "ward": 18, "month": 50}
SIX = [(), ("sex",), ("ward",), ("month",), ("sex", "ward"), ("sex", "month")]
FOUR = [(), ("sex",), ("ward",), ("month",)]


def tables(names: Any, *sizes: int) -> list[tuple[str, ...]]:
    return [chosen for size in sizes for chosen in combinations(names, size)]


def select(columns: tuple[str, ...], number: str) -> str:
    by = f" GROUP BY {', '.join(columns)}" if columns else ""
    return f"SELECT {', '.join([*columns, number + ' AS n'])} FROM data{by}"  # noqa: S608 - constants


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
    return pa.table({**{name: column.astype(str) for name, column in columns.items()}, "x": rng.beta(2, 5, rows)})


def study_of(source: pa.Table, domain: dict[str, int], folder: str) -> Study:
    """The last key is the label of all others, so that every row has a cell."""
    keys = {name: {"keys": [str(k) for k in range(size - 1)], "other": str(size - 1)} for name, size in domain.items()}
    columns = {**keys, "x": {"bounds": [0, 1], "missing": 0}}
    policy = Policy(source=source, columns=columns, epsilon=10_000, version="1", neighbors="add-remove")
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


def errors(source: pa.Table, domain: dict[str, int], counts: Any, means: Any) -> tuple[list[str], dict[str, float]]:
    """The errors of the tables; of means, those of the sums of shares that they rest on, in rows."""
    wanted = {f"count {' '.join(t)}": select(t, "count(*)") for t in counts}
    wanted |= {f"mean {' '.join(t)}": select(t, "avg(x)") for t in means}
    squares: dict[str, list[float]] = {name: [] for name in wanted}
    rows, covered = [], []
    with tempfile.TemporaryDirectory() as folder:
        study = study_of(source, domain, folder)
        allocated.cache_clear()
        begun = time.perf_counter()
        plan = study.report(wanted, epsilon=1)
        planned = time.perf_counter() - begun
        fitted = math.inf
        for number in range(RELEASES):
            report = study.report(wanted, epsilon=f"1.{number:09d}").release()
            begun = time.perf_counter()
            fit = report.plan.design.fit(report.columns, None)
            found = {t.name: fit.table(t.levels(plan.axes, t.numbers[0])) for t in plan.asked.tables}
            fitted = min(fitted, time.perf_counter() - begun)
            for table in plan.asked.tables:
                of, *_ = table.name.split()
                names = [group.of.name for group in table.query.groups]  # type: ignore[union-attr]
                exact = exact_cells(source, domain, names, of)
                numerators, denominator = found[table.name]
                if of == "mean":
                    number_axis = table.numbers[0].attribute
                    numerators = np.take(numerators, 0, axis=number_axis)
                indices = [index for index, _ in table.groups]
                kept = np.asarray(numerators, np.float64) / denominator
                kept = kept.reshape([n for n in kept.shape if n > 1]).transpose(np.argsort(np.argsort(indices)))
                squares[table.name].append(float(((kept - exact) ** 2).mean()))
                if of == "count":
                    answer = report[table.name].to_dict()
                    low, high = np.array(answer["n_low"]), np.array(answer["n_high"])
                    covered += ((low <= exact.ravel()) & (exact.ravel() <= high)).tolist()
            if not means and number < RELEASES // 4:
                rows.append(_rows_error(report, source, domain, counts))
    each = {name: math.sqrt(float(np.mean(values))) for name, values in squares.items()}
    alone = math.sqrt(2) * len(wanted)
    line = [
        f"{alone:.1f}",
        f"{np.mean(list(each.values())):.2f}",
        f"{max(each.values()):.1f}",
        f"{100 * np.mean(covered):.1f} %",
        f"{np.mean(rows):.2f}" if rows else "",
        f"{len(plan.measured)}",
        f"{planned:.2f} s",
        f"{1000 * fitted:.0f} ms",
    ]
    return line, each


def _rows_error(report: Any, source: pa.Table, domain: dict[str, int], counts: Any) -> float:
    """Of the tables of the rows that reproduce the report."""
    rows = report.rows()
    return float(
        np.mean(
            [
                np.sqrt(
                    np.mean(
                        (
                            exact_cells(
                                rows.append_column("x", pa.nulls(rows.num_rows, pa.float64())), domain, list(t), "count"
                            )
                            - exact_cells(source, domain, list(t), "count")
                        )
                        ** 2
                    )
                )
                for t in counts
            ]
        )
    )


def scan() -> list[list[str]]:
    """The time of the one statement of a report, beside plain GROUPING SETS of the tables that are asked for."""
    source, found = data(ADULT, SCANNED), []
    wanted = tables(ADULT, 1, 2)
    with tempfile.TemporaryDirectory() as folder:
        pa.parquet.write_table(source, path := f"{folder}/data.parquet")
        connection = duckdb.connect()
        connection.execute(f"CREATE VIEW data AS SELECT * FROM '{path}'")
        sets = ", ".join(f"({', '.join(t)})" for t in wanted)
        plain = f"SELECT {', '.join(ADULT)}, count(*) FROM data GROUP BY GROUPING SETS ({sets})"  # noqa: S608
        study = study_of(path, ADULT, folder)  # type: ignore[arg-type]
        best = {"plain": math.inf, "ours": math.inf}
        for number in range(5):
            begun = time.perf_counter()
            connection.execute(plain).fetchall()
            best["plain"] = min(best["plain"], time.perf_counter() - begun)
            plan = study.report({" ".join(t): select(t, "count(*)") for t in wanted}, epsilon=f"1.{number:09d}")
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


def main() -> None:
    lines = []
    for name, domain, counts, means, goal in REPORTS:
        line, _ = errors(data(domain, ROWS), domain, counts, means)
        lines.append([name, *line, goal])
    headings = ["report", "one by one", "together", "worst table", "covered", "rows", "sets", "plan", "fit", "goal"]
    print(markdown("Whole reports: errors at ε = 1, in rows", headings, lines))
    print(markdown("Whole reports: release beside plain GROUPING SETS", ["data", "plain", "discreet", "ratio"], scan()))


if __name__ == "__main__":
    main()
