"""Errors of questions that ask for several numbers at once: root mean squares, of the real code,
beside their goals.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.measure import table as markdown
from discreet import Policy, Study
from discreet.engines.base import Exact, Present, Product, Rows, Squares, Total
from discreet.release.design import items

SIZE, GROUPS = 1_000, 20_000
TABLES: list[tuple[str, str, Any, str, dict[str, float]]] = [
    ("count(*), avg(a)", "add-remove", 0, "", {"count(*)": 2.05, "avg(a)": 0.00113}),
    ("count(*), avg(a)", "add-remove", "drop", "", {"count(*)": 2.5, "avg(a)": 0.00113}),
    ("avg(a), avg(b)", "add-remove", 0, "", {"avg(a)": 0.00217 / 1.35, "avg(b)": 0.00217 / 1.35}),
    (
        "count(*), avg(a), avg(b), avg(c)",
        "add-remove",
        0,
        "",
        {"count(*)": 3.6, "avg(a)": 0.0034, "avg(b)": 0.0034, "avg(c)": 0.0034},
    ),
    ("avg(a)", "change-one", 0, "WHERE c >= 0", {"avg(a)": 0.00158}),
    ("var_pop(a)", "change-one", 0, "WHERE c >= 0", {"var_pop(a)": 0.00122}),
    ("count(*), avg(a), avg(b)", "change-one", 0, "WHERE c >= 0", {}),
]


def _integer(measure: Any, columns: dict[str, Any]) -> int:
    """What the rows add to a measure: values on a grid of 2³⁰ or 2²² steps."""

    def point(value: Any) -> Any:
        return (
            np.floor(columns[value.of.name] / float(value.grid.step) + 0.5).astype(object)
            - value.grid.lower
        )

    match measure:
        case Rows() | Present():
            return SIZE
        case Total(value):
            return int(point(value).sum())
        case Squares(value):
            return int((point(value) ** 2).sum())
        case Product(first, second, (power, other)):
            return int((point(first) ** power * point(second) ** other).sum())
    raise TypeError(measure)


def errors(asked: str, neighbors: str, missing: Any, where: str) -> dict[str, float]:
    """For each number the root mean square of its errors."""
    rng = np.random.default_rng(1)
    columns = {name: rng.beta(2, 5, SIZE) for name in "abc"}
    declared = {name: {"bounds": [0, 1], "missing": missing} for name in "abc"}
    policy = Policy(
        source=pa.table(columns), columns=declared, epsilon=10, version="1", neighbors=neighbors
    )
    with tempfile.TemporaryDirectory() as folder:
        study = Study(policy, ledger=Path(folder) / "study.ledger")
        plan = study.sql(f"SELECT {asked} FROM data {where}", epsilon=1)
    truth = {
        "count(*)": SIZE,
        "var_pop(a)": columns["a"].var(),
        **{f"avg({n})": x.mean() for n, x in columns.items()},
    }
    found = {}
    for share in plan.shares:
        exact = Exact(
            [[_integer(measure, columns)] * GROUPS for measure in share.design.measures()]
        )
        for name, released in items(
            share.design, exact, share.terms, share.epsilon, plan.level
        ).items():
            title = plan.titles()[name]
            values = np.array([value for value, _, _ in released])
            found[title] = float(np.sqrt(np.mean((values - truth[title]) ** 2)))
    return found


def main() -> None:
    rows = []
    for asked, neighbors, missing, where, goals in TABLES:
        for title, error in errors(asked, neighbors, missing, where).items():
            goal = f"{goals[title]:.3g}" if title in goals else ""
            rows.append([asked, neighbors, str(missing), where, title, f"{error:.3g}", goal])
    headings = ["question", "relation", "missing", "", "number", "error", "goal"]
    print(markdown("Numbers that are asked for together", headings, rows))


if __name__ == "__main__":
    main()
