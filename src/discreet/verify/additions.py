"""Releases of random data on all paths, held against the exact integers plus the noise drawn.

    questions     statistics by relation, unit, condition and groups, with missing and odd values
    sizes         1, 64, 65, 3,143 and 70,000 groups; totals near 10⁶, 2⁵³, 2⁶⁰, 2⁶³ and above
    sources       Arrow, pandas, polars, CSV, Parquet, DuckDB
    targets       tables, Parquet files, the record of a ledger, and the same again from it, free
    arrays        columns in memory, of every container and width; the textbook's mechanisms
    numbers       Algorithm 1 on numbers, lists, arrays and files
    tables        reports, profiles and discoveries

Every run has new data, from the one source of randomness: there is no seed. A line that fails names
the question.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.ask.expression import Column
from discreet.ask.policy import Policy
from discreet.draw.coin import below
from discreet.draw.entropy import keystream
from discreet.draw.noted import Noted, noting
from discreet.engines.base import (
    Cells,
    Exact,
    OnGrid,
    Present,
    Product,
    Request,
    Rows,
    Squares,
    Total,
    Units,
)
from discreet.engines.integers import CellCounts, column
from discreet.errors import InvalidParameter
from discreet.parameters import Neighbors
from discreet.release.plan import Plan
from discreet.release.reports.plan import ReportPlan
from discreet.release.statistics.counts import CountDesign
from discreet.release.study import Study
from discreet.verify import reference
from discreet.verify.added import (
    Drawn,
    Expected,
    Law,
    expected_of,
    refuse,
    report_totals,
    request_of,
    with_noise,
)
from discreet.verify.parts import parts_by_share, parts_of

Row = dict[str, Any]

RELATIONS: tuple[Neighbors, ...] = ("change-one", "add-remove")


class Dice:
    """Random data, from the one source of randomness."""

    def __init__(self) -> None:
        self._entropy = keystream()

    def below(self, limit: int) -> int:
        return below(limit, self._entropy)

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""
        span = high - low + 1
        words = -(-span.bit_length() // 64) + 1
        return low + sum(self._entropy.more() << 64 * word for word in range(words)) % span

    def of(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]

    def often(self, value: Callable[[], Any], other: Any = None) -> Any:
        """A value in seven of eight cases."""
        return value() if self.below(8) else other

    def epsilon(self) -> Fraction:
        """Mostly small, so that there is noise to see."""
        return Fraction(1 + self.below(63), 2 ** (4 + self.below(5)))


@dataclass
class Proof:
    """What was held against the reference so far."""

    law: Law = field(default_factory=Law)
    dice: Dice = field(default_factory=Dice)
    numbers: int = 0
    """Released numbers that were as they must be."""

    def plan(
        self, plan: Plan, rows: Sequence[Row], *, to: Path | None = None, integers: Any = None
    ) -> None:
        """Release a plan to a table or file, and hold it against these rows, or given integers."""
        what, study = plan.query.sql or plan.canonical, plan.study
        parts = parts_by_share(plan)
        for share, own in zip(plan.shares, parts, strict=True):
            lost = sum((part.loss for part in own), Fraction())
            refuse(lost <= share.epsilon, f"{what} has too little noise for its share")
        measured = integers or reference.fetch(request_of(plan), rows)
        before = study.spent
        with noting() as notes:
            released: Any = plan.release() if to is None else plan.release(to=to)
        cost = sum((share.epsilon for share in plan.shares), Fraction())
        refuse(
            study.spent - before == plan.cost == cost,
            f"{what} is charged another epsilon than it uses",
        )
        drawn = Drawn(notes)
        expected = expected_of(plan, parts, measured, drawn, in_file=to is not None)
        drawn.end(what)
        self.law.add(notes, what)
        names = {
            output.name: name for name, output in plan.query.outputs if hasattr(output, "name")
        }
        table = released.to_arrow()
        for name, one in expected.items():
            found: Any = (
                table[names[name]].to_numpy()
                if to is not None
                else released.recorded.numbers[name][0]
            )
            one.require(found, what)
            if found.dtype != object:  # a larger integer has no type in Arrow
                one.require(table[names[name]].to_numpy(), what)
            self.numbers += len(found)
        if to is None:
            for share in plan.shares:
                if isinstance(share.design, CountDesign):
                    _even_ends(released.recorded.numbers[share.design.name], what)
        with noting() as again:
            repeated: Any = plan.release() if to is None else plan.release(to=to)
        same = (
            repeated.content == released.content
            if to is None
            else repeated.record == released.record
        )
        refuse(
            not again and same and study.spent - before == plan.cost,
            f"{what}, asked again, is not the same answer",
        )


def _even_ends(numbers: tuple[Any, ...], what: str) -> None:
    """Refuse ends of counts at unequal distances: what differs would tell more than the count."""
    values, low, high = numbers
    reaches = {int(end) - int(value) for value, end in zip(values, high, strict=True)}
    reaches |= {int(value) - int(end) for value, end in zip(values, low, strict=True)}
    refuse(len(reaches) <= 1, f"{what} has ends that are not as far from every count")


# -- data ------------------------------------------------------------------------------------------

TYPES: dict[str, pa.DataType] = {
    "who": pa.string(),
    "place": pa.string(),
    "level": pa.int64(),
    "age": pa.int64(),
    "pay": pa.float64(),
    "debt": pa.float64(),
    "well": pa.bool_(),
    "far": pa.int64(),
    "code": pa.int64(),
}
COLUMNS: dict[str, dict[str, Any]] = {
    "place": {"keys": ["north", "south", "west"]},
    "level": {"keys": [1, 2], "other": "more"},
    "age": {"bounds": (0, 120)},
    "pay": {"bounds": (-3, 5), "missing": 2},
    "debt": {"bounds": ("-0.7", "1234.56")},
    "well": {},
    "far": {"bounds": (2**50, 2**50 + 2**20)},
}
_ODD = [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, None]


def people(dice: Dice, rows: int, codes: int = 7) -> list[Row]:
    """Rows with missing values, values out of all bounds and keys, and units with several rows."""

    def number(bound: int) -> float:
        return dice.between(-bound * 2**20, bound * 2**20) / 2**20

    return [
        {
            "who": dice.often(lambda: f"u{dice.below(1 + rows // 3)}"),
            "place": dice.often(lambda: dice.of(["north", "south", "west", "moon"])),
            "level": dice.often(lambda: dice.below(4)),
            "age": dice.often(lambda: dice.between(-30, 160)),
            "pay": dice.often(lambda: number(7), dice.of(_ODD)),
            "debt": dice.often(lambda: number(2_000), dice.of(_ODD)),
            "well": dice.often(lambda: bool(dice.below(2))),
            "far": dice.often(lambda: dice.between(2**50 - 2**18, 2**50 + 2**20 + 2**18)),
            "code": dice.below(codes + 2),
        }
        for _ in range(rows)
    ]


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Rows as an Arrow table."""
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()}
    )


@contextmanager
def study_of(source: Any, *, codes: int = 7, **terms: Any) -> Iterator[Study]:
    """A study of a source with these columns, whose ledger lies in a temporary folder."""
    columns = {**COLUMNS, "code": {"keys": f"1..{codes}"}}
    policy = Policy(source=source, epsilon=10**6, version="0", columns=columns, **terms)
    with (
        tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder,
        Study(policy, ledger=Path(folder, "study.ledger")) as study,
    ):
        yield study


# -- questions -------------------------------------------------------------------------------------

SINGLE = (
    *(
        "count(*)",
        "count(age)",
        "count_if(age >= 40)",
        "sum(age)",
        "sum(debt)",
        "sum(far)",
        "avg(age)",
        "avg(pay)",
    ),
    *(
        "avg(well)",
        "variance(age)",
        "stddev(pay)",
        "stddev_pop(debt)",
        "median(age)",
        "quantile(debt, 0.9)",
    ),
    *(
        "min(age)",
        "max(debt)",
        "avg(LEAST(GREATEST(age * 2 - level, -5), 300))",
        "sum(CASE WHEN well THEN pay ELSE 1 END)",
    ),
)
SEVERAL = (
    "count(*), avg(age), avg(pay), stddev(pay)",
    "count(*), count(age), count_if(level = 1), avg(age), sum(pay), avg(well)",
    "avg(age), avg(debt), count(debt), median(pay)",
)
CONDITIONS = (
    "",
    " WHERE age >= 30",
    " WHERE place IN ('north', 'moon') OR well",
    " WHERE NOT (debt < 100)",
)
GROUPS = ("", " GROUP BY place", " GROUP BY place, level")
UNITS: tuple[dict[str, Any], ...] = (
    {},
    {"unit": "who", "max_rows": 2},
    {"unit": "who", "max_rows": 3, "max_groups": 1},
)


def questions(proof: Proof, rounds: int) -> None:
    """Each statistic with each relation, and in turn each unit, condition and choice of groups."""
    dice = proof.dice
    for turn in range(rounds):
        rows = people(dice, 40 + dice.below(120))
        for number, (neighbors, unit) in enumerate((n, u) for n in RELATIONS for u in UNITS):
            with study_of(table_of(rows), neighbors=neighbors, **unit) as study:
                asked = [*SINGLE, *SEVERAL, *(["count(DISTINCT who)"] if unit else [])]
                for place, text in enumerate(asked):
                    if rounds == 1 and (place + number) % 3:
                        continue
                    where = CONDITIONS[(place + turn + dice.below(2) * 2) % 4]
                    groups = GROUPS[(place + number + turn) % 3 if turn else dice.below(3)]
                    ask(proof, study, rows, f"{text}|{where}{groups}")
                ask(proof, study, rows, f"count(*), sum(age)|{CONDITIONS[1]}")
                for text in (
                    "count(*), avg(pay)|",
                    "sum(pay), avg(pay)|",
                    "sum(pay), stddev(pay)|",
                ):
                    ask(proof, study, rows, text)  # of everybody: their number may be public


def ask(proof: Proof, study: Study, rows: Sequence[Row], text: str, **more: Any) -> None:
    """A question at a random ε, held against the rows."""
    asked, _, rest = text.partition("|")
    plan = study.sql(
        " ".join(["SELECT", asked, "FROM data", rest]).rstrip(), epsilon=proof.dice.epsilon()
    )
    proof.plan(plan, rows, **more)


# -- sizes -----------------------------------------------------------------------------------------


def sizes(proof: Proof, most: int, rows: int) -> None:
    """One group, 64 and 65, where lists become arrays, and more, up to `most`."""
    dice = proof.dice
    for codes in (64, 65, 3_143, most):
        data = people(dice, rows, codes)
        few = codes <= 3_143
        for neighbors, unit in ((dice.of(RELATIONS), {}), (dice.of(RELATIONS), UNITS[2])):
            with study_of(table_of(data), codes=codes, neighbors=neighbors, **unit) as study:
                asked = [
                    "sum(far)",
                    "count(*), sum(age), avg(pay)",
                    "avg(debt)",
                    "stddev(age), avg(well)",
                    "count(age)",
                ]
                if codes <= 65:
                    asked += ["median(age)", "max(age), min(pay)", "quantile(age, 0.25), count(*)"]
                if unit:
                    asked.append("count(DISTINCT who)")
                for text in asked if few else asked[:1]:
                    ask(proof, study, data, f"{text}|GROUP BY code")


class _Given:
    """An engine that gives integers of its own."""

    def __init__(self, engine: Any, integers: list[Any]) -> None:
        self._engine, self._integers = engine, integers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def fetch(self, request: Request) -> Exact[list[list[Any]]]:
        columns: list[Any] = []
        for measure, integers in zip(request.measures, self._integers, strict=True):
            if isinstance(measure, Cells):
                columns.append(CellCounts.of(integers))
                continue
            small = all(-(2**63) <= one < 2**63 for one in integers)
            columns.append(column(np.array(integers, np.int64 if small else object)))
        return Exact(columns)


_NEAR = (20, 36, 53, 60, 62, 63, 70)
"""Powers of two near which the largest totals lie."""


def totals(proof: Proof, groups: Sequence[int]) -> None:
    """Totals of every size, as an engine would give them of crowds of rows."""
    dice = proof.dice
    for codes in groups:
        for power in _NEAR:
            neighbors, unit = dice.of(RELATIONS), dice.of(UNITS)
            with study_of(
                table_of(people(dice, 5, codes)), codes=max(codes, 1), neighbors=neighbors, **unit
            ) as study:
                engine = study.engine
                asked = ["count(age)", "sum(age)", "sum(far)", "sum(debt)", "count(*), sum(pay)"]
                asked += [
                    "avg(age)",
                    "stddev(age)",
                    "count(*), avg(age), avg(pay)",
                    "avg(age), stddev(debt)",
                ]
                asked += ["median(age)", "min(debt)"] if power <= 36 else []
                for text in asked:
                    by = " GROUP BY code" if codes else ""
                    epsilon = Fraction(1 + dice.below(2 ** dice.between(1, 24)), 10**9)
                    sql = " ".join(["SELECT", text, "FROM data WHERE age > 1", by]).rstrip()
                    plan = study.sql(sql, epsilon=max(epsilon, Fraction(1, 10**5)))
                    integers = crowds(dice, request_of(plan), max(codes, 1), power)
                    study.__dict__["engine"] = _Given(engine, integers)
                    proof.plan(plan, [], integers=integers)
                    study.__dict__["engine"] = engine


def crowds(dice: Dice, request: Request, groups: int, power: int) -> list[Any]:
    """Integers of a request, of a few points in each group, each with very many rows."""
    values: list[Any] = []
    for measure in request.measures:
        if isinstance(measure, Product):
            values += [measure.first, measure.second]
        elif isinstance(measure, Rows):
            values.append(measure.of)
        elif not isinstance(measure, Units):
            values.append(measure.value)
    kinds = list(dict.fromkeys(values))
    largest = max(map(_largest, request.measures))
    most = max(
        1,
        2 ** (min(power, 34) if any(isinstance(one, Cells) for one in request.measures) else power)
        // largest,
    )
    found: list[list[Any]] = [[] for _ in request.measures]
    for _ in range(groups):
        rows = []
        for _ in range(dice.below(4)):
            weight = dice.between(1, dice.of([most, most, min(most, 9)]))
            facts = {kind: _fact(dice, kind) for kind in kinds}
            rows.append((weight, facts))
        for column_, measure in zip(found, request.measures, strict=True):
            column_.append(_crowd(measure, rows))
    return found


def _largest(measure: Any) -> int:
    """The largest integer that a row has for a measure."""
    if isinstance(measure, Product):
        return int(
            measure.first.grid.width ** measure.powers[0]
            * measure.second.grid.width ** measure.powers[1]
        )
    power = 2 if isinstance(measure, Squares) else 1 if isinstance(measure, Total) else 0
    return int(measure.value.grid.width**power) if power else 1


def _fact(dice: Dice, kind: Any) -> int | None:
    """A random integer of one row, or None if it is missing."""
    if isinstance(kind, OnGrid):
        point = dice.of([0, kind.grid.width, dice.between(0, kind.grid.width)])
        return point if kind.missing is not None or dice.below(8) else None
    return 1 if kind is None or dice.below(2) else None


def _crowd(measure: Any, rows: list[tuple[int, dict[Any, int | None]]]) -> Any:
    """The integer of a measure, of rows with weights."""
    if isinstance(measure, Cells):
        counts = np.zeros(measure.value.grid.width + 1, np.int64)
        for weight, facts in rows:
            if (point := facts[measure.value]) is not None:
                counts[point] += weight
        return counts
    total = 0
    for weight, facts in rows:
        match measure:
            case Units():
                total += weight
            case Rows(of):
                total += weight if facts[of] is not None else 0
            case Product(first, second, (power, other)):
                a, b = facts[first], facts[second]
                total += 0 if a is None or b is None else weight * a**power * b**other
            case _:
                a = facts[measure.value]
                total += 0 if a is None else weight * (1 if isinstance(measure, Present) else a)
                if a is not None and isinstance(measure, Squares):
                    total += weight * (a * a - a)
    return total


# -- sources and targets ---------------------------------------------------------------------------


def sources(proof: Proof) -> None:
    """Rows from frames and files; a text file's size is private, as a line may be unreadable."""
    from pyarrow import csv, parquet

    dice = proof.dice
    rows = people(dice, 80)
    table = table_of(rows)
    with tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder:
        parquet.write_table(table, Path(folder, "data.parquet"))
        csv.write_csv(table.select(["who", "age", "pay", "debt"]), Path(folder, "data.csv"))
        given: list[tuple[Any, Sequence[Row]]] = [
            (Path(folder, "data.parquet"), rows),
            (table, rows),
        ]
        for package in ("pandas", "polars"):
            with suppress(ImportError):
                import_module(package)
                given.append(
                    (
                        (
                            table.to_pandas()
                            if package == "pandas"
                            else import_module("polars").from_arrow(table)
                        ),
                        rows,
                    )
                )
        for source, its in given:
            with study_of(source, neighbors=dice.of(RELATIONS)) as study:
                for text in (
                    "count(*)|",
                    "sum(age), avg(pay)|",
                    "avg(debt)|WHERE debt < 100",
                    "count(*), sum(far)|GROUP BY place",
                ):
                    ask(proof, study, its, text)
        numbers = {name: COLUMNS[name] | {"type": "number"} for name in ("age", "pay", "debt")}
        policy = Policy(
            source=Path(folder, "data.csv"), epsilon=10**6, version="0", columns=numbers
        )
        texts = [
            {
                name: None if row[name] is None else str(row[name])
                for name in ("who", "age", "pay", "debt")
            }
            for row in rows
        ]
        with Study(policy, ledger=Path(folder, "study.ledger")) as study:
            for text in ("count(*)|", "sum(age), avg(pay)|", "avg(debt)|", "max(age)|"):
                ask(proof, study, texts, text)


def targets(proof: Proof, most: int) -> None:
    """Answers in Parquet files, of one batch and of two."""
    dice = proof.dice
    with tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder:
        for codes in (3, 65, most):
            rows = people(dice, 300, codes)
            with study_of(
                table_of(rows), codes=codes, neighbors=dice.of(RELATIONS), **dice.of(UNITS)
            ) as study:
                asked = ["sum(far)", "count(*), avg(pay), stddev(age)", "avg(age)"]
                for number, text in enumerate(asked if codes < most else asked[:1]):
                    ask(
                        proof,
                        study,
                        rows,
                        f"{text}|GROUP BY code",
                        to=Path(folder, f"{codes}-{number}.parquet"),
                    )


# -- reports, profiles, discoveries ----------------------------------------------------------------

_REPORT = {
    "places": "SELECT place, count(*), avg(age), avg(pay) FROM data GROUP BY place",
    "both": "SELECT place, level, count(*), sum(debt) FROM data GROUP BY place, level",
    "some": "SELECT count(*), avg(well) FROM data WHERE place IN ('north', 'west')",
}
_OF_SOME = {
    "levels": "SELECT level, count(*), avg(debt) FROM data WHERE age >= 30 GROUP BY level",
    "all": "SELECT count(*), sum(age) FROM data WHERE age >= 30",
}
"""A report whose tables have the same condition."""


def reports(proof: Proof, rounds: int) -> None:
    """The noisy columns of all measured sets of a report, as its record has them."""
    dice = proof.dice
    for _ in range(rounds):
        rows = people(dice, 60 + dice.below(60))
        for neighbors, unit in (
            (neighbors, unit) for neighbors in RELATIONS for unit in (UNITS[0], UNITS[2])
        ):
            with study_of(table_of(rows), neighbors=neighbors, **unit) as study:
                for tables in (_REPORT, _OF_SOME):
                    report(proof, study.report(tables, epsilon=proof.dice.epsilon()), rows)


def report(proof: Proof, plan: ReportPlan, rows: Sequence[Row]) -> None:
    """Release a report, and hold its record against these rows."""
    [part], study, before = parts_of(plan), plan.study, plan.study.spent
    refuse(part.loss <= plan.epsilon, "a report has too little noise for its epsilon")
    with noting() as notes:
        released = plan.release()
    refuse(study.spent - before == plan.epsilon, "a report is charged another epsilon than it uses")
    drawn = Drawn(notes)
    columns = with_noise(report_totals(plan, rows), part, drawn)
    drawn.end("a report")
    proof.law.add(notes, "a report")
    written = [column["values"] for one in released.record["sets"] for column in one["columns"]]
    refuse(
        written == columns,
        "a report is not the exact numbers plus the noise that was drawn for them",
    )
    everybody = (
        study.policy.neighbors == "change-one"
        and study.policy.unit_column is None
        and plan.layout.where is None
        and not study.engine.chosen
    )
    refuse(
        released.record["rows"] == (len(rows) if everybody else None),
        "a report has a public number of rows",
    )
    proof.numbers += sum(map(len, columns))
    with noting() as again:
        same = plan.release().content == released.content
    refuse(
        same and not again and study.spent - before == plan.epsilon,
        "a report, asked again, is not the same",
    )


def profiles(proof: Proof, rounds: int) -> None:
    """The counts of all octaves of columns, and of units by their rows."""
    dice = proof.dice
    for _ in range(rounds):
        rows = people(dice, 250)
        for neighbors, unit in ((neighbors, unit) for neighbors in RELATIONS for unit in UNITS[:2]):
            with study_of(table_of(rows), neighbors=neighbors, **unit) as study:
                profile(proof, study, ["age", "debt", *(["who"] if unit else [])], rows)


def profile(proof: Proof, study: Study, names: list[str], rows: Sequence[Row]) -> None:
    """Release a profile of age and debt, and hold it against these rows."""
    epsilon, unit, before = Fraction(6 + proof.dice.below(5)), study.policy.unit_column, study.spent
    with noting() as notes:
        found = study.profile(names, epsilon=epsilon)
    refuse(study.spent - before == epsilon, "a profile is charged another epsilon than it uses")
    drawn, delta = Drawn(notes), 2 if study.policy.neighbors == "change-one" else 1
    for name, whole in (("age", True), ("debt", False)):
        group = reference.octaves(Column(name, "number"), whole)
        request = Request((Rows(),), (group,), unit=unit, max_rows=None if unit is None else 1)
        _counted(
            drawn,
            reference.fetch(request, rows)[0],
            found[name].counts,
            delta * len(names) / epsilon,
        )
    if unit is not None and found.unit is not None:
        limits = [2**power for power in range(21)]
        _counted(
            drawn,
            reference.by_rows(rows, unit, limits),
            found.unit.counts,
            delta * len(names) / epsilon,
        )
    drawn.end("a profile")
    proof.law.add(notes, "a profile")
    proof.numbers += sum(note.count for note in notes)
    with noting() as again:
        same = study.profile(names, epsilon=epsilon).columns == found.columns
    refuse(
        same and not again and study.spent - before == epsilon,
        "a profile, asked again, is not the same",
    )


def _counted(drawn: Drawn, exact: Sequence[int], found: Sequence[int], scale: Fraction) -> None:
    noise = drawn.noise(len(exact), scale, "a profile")
    Expected([count + draw for count, draw in zip(exact, noise, strict=True)]).require(
        found, "a profile"
    )


def discoveries(proof: Proof, rounds: int) -> None:
    """Keys that are shown, by the coins of the reference's number of units of each."""
    dice = proof.dice
    for _ in range(rounds):
        for neighbors, unit in ((neighbors, unit) for neighbors in RELATIONS for unit in UNITS):
            rows = [
                {
                    **row,
                    "place": f"p{dice.below(20)}",
                    "level": dice.often(lambda: dice.below(1 + dice.below(60))),
                }
                for row in people(dice, 300)
            ]
            columns = {"place": {"keys": "discover"}, "level": {"keys": "discover"}}
            terms: dict[str, Any] = {
                "epsilon": 100,
                "delta": "1/100",
                "version": "0",
                "columns": columns,
                **unit,
            }
            policy = Policy(source=table_of(rows), neighbors=neighbors, **terms)
            with (
                tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder,
                Study(policy, ledger=Path(folder, "study.ledger")) as study,
            ):
                discovery(proof, study, rows, Fraction(1 + dice.below(12), 4))


def discovery(proof: Proof, study: Study, rows: Sequence[Row], epsilon: Fraction) -> None:
    """Discover the keys of places and levels, and hold them against these rows."""
    policy, before = study.policy, study.spent
    with noting() as notes:
        found = study.discover("place", "level", epsilon=epsilon)
    refuse(study.spent - before == epsilon, "a discovery is charged another epsilon than it uses")
    most = 1 if policy.unit_column is None else policy.max_groups or policy.max_rows or 1
    shares = 2 * most * (2 if policy.neighbors == "change-one" else 1)
    rest = list(notes)
    for name, kind in (("level", "number"), ("place", "text")):
        counts = reference.discover(Column(name, kind), rows, policy.unit_column, most)  # type: ignore[arg-type]
        shown = set(found[name])
        refuse(shown <= set(counts), f"a discovery shows a {name} that nobody has")
        for units in dict.fromkeys(counts.values()):
            alike = [key for key, many in counts.items() if many == units]
            chance = reference.kept(epsilon / shares, (policy.delta or Fraction()) / shares, units)
            fitting = [
                note
                for note in rest[: len(set(counts.values()))]
                if note.count == len(alike) and _is_coin(note, chance)
            ]
            heads = len(shown.intersection(alike))
            note = next((note for note in fitting if int(note.drawn.sum()) == heads), None)
            if note is None:
                raise InvalidParameter(
                    f"a discovery of {name} does not show keys by the coins of their units"
                )
            rest.remove(note)
    refuse(not rest, "a discovery tosses more coins than it has keys")
    proof.numbers += sum(note.count for note in notes)
    with noting() as again:
        same = study.discover("place", "level", epsilon=epsilon).keys == found.keys
    refuse(
        same and not again and study.spent - before == epsilon,
        "a discovery, asked again, is not the same",
    )


def _is_coin(note: Noted, chance: float) -> bool:
    """Whether coins were tossed with this chance: by their formula, and by each of their words."""
    formula = note.parameter if isinstance(note.parameter, Fraction) else note.parameter().mid()
    if abs(float(formula) - chance) > 1e-12 or note.words is None:
        return False
    words = note.words[: note.count].astype(np.float64) * 2.0**-64
    clear = np.abs(words - chance) > 1e-9
    return bool(((words < chance) == note.drawn.astype(bool))[clear].all())
