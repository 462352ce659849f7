"""Shapes of free questions that are as much work as we could think of: data, for `bench.plans` and
the tests.

A shape is a question, a report, a discovery or a profile about one of a few small studies.
`planned` plans it, and does everything else that is free about it: its price, its notes, its JSON
and, of a question, the curve of the server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pyarrow as pa

from discreet import Policy, Study
from discreet.release.discovery import discovery_plan
from discreet.release.plan import Plan
from discreet.release.profiles.plan import profile_plan
from discreet.release.reports.plan import ReportPlan
from discreet.release.split import trials_of
from discreet.release.work import CURVE, Steps, of_question
from discreet.show.json import plan_json, report_plan_json

NUMBERS, KEYS, MANY = 100, 20, 10_000
"""Columns of numbers, columns with keys, and columns of the widest study."""

Kind = Literal["sql", "report", "discover", "profile"]
Where = Literal["add-remove", "change-one", "units", "wide"]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A free question; `asked` is SQL, the tables of a report, or names of columns."""

    name: str
    kind: Kind = "sql"
    study: Where = "add-remove"
    asked: Any
    terms: Mapping[str, Any] = field(default_factory=lambda: {"epsilon": "1"})


def studies(folder: Path) -> dict[str, Study]:
    """The studies that the shapes ask about: three small ones, and one of 10,000 columns."""
    found = {name: _study(folder / name, **told) for name, told in _TOLD.items()}
    names = [f"measurement_{number:05}" for number in range(MANY)]
    table = pa.table({name: pa.array([1.0, 2.0]) for name in names})
    policy = Policy(
        source=table,
        columns={name: {"bounds": [0, 1]} for name in names},
        epsilon=1_000,
        version="1",
    )
    (folder / "wide").mkdir()
    return {**found, "wide": Study(policy, ledger=folder / "wide" / "study.ledger")}


_TOLD: dict[str, dict[str, Any]] = {
    "add-remove": {"neighbors": "add-remove"},
    "change-one": {"neighbors": "change-one"},
    "units": {"neighbors": "change-one", "unit": "person", "max_rows": 10**9, "max_groups": 10**6},
}


def _study(folder: Path, **told: Any) -> Study:
    folder.mkdir()
    (folder / "counties.csv").write_text(
        "state,county\n" + "".join(f"S{number // 60},C{number}\n" for number in range(3_143)),
        encoding="utf-8",
    )
    (folder / "states.csv").write_text(
        "state\n" + "".join(f"S{number}\n" for number in range(53)), encoding="utf-8"
    )
    numbers = {f"x{number}": {"bounds": [-number, 100]} for number in range(NUMBERS)}
    keys = {f"k{number}": {"keys": f"1..{number + 2}"} for number in range(KEYS)}
    columns: dict[str, Any] = {
        **numbers,
        **keys,
        **{f"w{number}": {"bounds": [0, number + 1]} for number in range(NUMBERS)},
        "filled": {"bounds": [0, 100], "missing": 0},
        "income": {"bounds": [0, 10**6]},
        "county": {"keys": "counties.csv#county"},
        "state": {"keys": "states.csv#state"},
        "hundred": {"keys": "1..100"},
        "thousand": {"keys": "1..1000"},
        "million": {"keys": "1..1000000"},
        "word": {},
        "day": {},
        "open": {"keys": "discover"},
        "free": {},
    }
    rows: dict[str, Any] = {name: [1.0, 2.0] for name in (*numbers, "filled", "income", "free")}
    rows |= {
        name: [1, 2]
        for name in (
            *keys,
            *(f"w{number}" for number in range(NUMBERS)),
            "hundred",
            "thousand",
            "million",
        )
    }
    rows |= {
        "county": ["C1", "C2"],
        "state": ["S0", "S0"],
        "word": ["a", "b"],
        "open": ["a", "b"],
        "person": [1, 2],
    }
    rows["day"] = pa.array([0, 1], pa.date32())
    policy = Policy(
        source=pa.table(rows),
        columns=columns,
        epsilon=1_000,
        delta="1e-6",
        version="1",
        folder=folder,
        **told,
    )
    return Study(policy, ledger=folder / "study.ledger")


def planned(study: Study, shape: Shape) -> Any:
    """All that is free about a shape; a refusal is raised."""
    match shape.kind:
        case "sql":
            from discreet.serve.studies import curve

            plan = study.sql(shape.asked, **shape.terms)
            repr(plan), json.dumps(plan_json(plan))
            curve(plan, SimpleNamespace(analyst=None))  # type: ignore[arg-type]
            return plan
        case "report":
            report = study.report(shape.asked, **shape.terms)
            repr(report), json.dumps(report_plan_json(report))
            return report
        case "discover":
            found = discovery_plan(study, shape.asked, **shape.terms)
            return found, found.rule.last, found.rule.units_for(0.5)
        case "profile":
            return profile_plan(study, shape.asked, **shape.terms)


_QUOTED = "'w{0}'"


def steps_of(plan: Any, shape: Shape) -> Steps:
    """The steps of a plan, at most; none of a discovery and of a profile, whose columns alone are
    limited.
    """
    searched = "within" in shape.terms
    if isinstance(plan, ReportPlan):
        return plan.steps
    if not isinstance(plan, Plan):
        return Steps()
    return of_question(plan.shares, 1 + CURVE + (trials_of(plan.query) if searched else 0))


def _select(*items: str, by: str = "", where: str = "") -> str:
    conditions, groups = f" WHERE {where}" if where else "", f" GROUP BY {by}" if by else ""
    return f"SELECT {', '.join(items)} FROM data{conditions}{groups}"


def _many(count: int, item: str) -> list[str]:
    return [item.format(number) for number in range(count)]


def _case(branches: int, last: str) -> str:
    return (
        f"CASE {' '.join(f'WHEN x1 > {number} THEN {number}' for number in range(branches))} ELSE"
        f" {last} END"
    )


def _tables(columns: int, sizes: tuple[int, ...], number: str = "count(*)") -> dict[str, str]:
    """All tables of so many of these columns."""
    names = [f"k{column}" for column in range(columns)]
    chosen = [group for size in sizes for group in combinations(names, size)]
    return {
        f"t{place}": _select(*by, f"{number} AS n", by=", ".join(by))
        for place, by in enumerate(chosen)
    }


TOGETHER = {"epsilon": "1", "simultaneous": True}
WITHIN = {"within": "1000", "size": 1000}


def _questions() -> Iterator[Shape]:
    cases = _many(99, "sum(CASE WHEN x1 > {0} THEN x2 ELSE 0 END)")
    yield Shape(name="99 sums of a CASE, simultaneous", asked=_select(*cases), terms=TOGETHER)
    yield Shape(name="99 sums of a CASE, within", asked=_select(*cases), terms=WITHIN)
    yield Shape(
        name="400 sums of a CASE", asked=_select(*_many(400, "sum(CASE WHEN x1>{0} THEN x2 END)"))
    )
    for study in ("add-remove", "change-one", "units"):
        for count in (10, 30, 100):
            yield Shape(
                name=f"{count} means, {study}",
                study=study,
                asked=_select(*_many(count, "avg(x{0})")),
                terms=TOGETHER,
            )
        yield Shape(
            name=f"100 means by county, {study}",
            study=study,
            asked=_select(*_many(100, "avg(x{0})"), by="county"),
        )
        yield Shape(
            name=f"100 stddevs, {study}",
            study=study,
            asked=_select(*_many(100, "stddev(x{0})")),
            terms=TOGETHER,
        )
        yield Shape(
            name=f"30 stddevs by county, {study}",
            study=study,
            asked=_select(*_many(30, "stddev(x{0})"), by="county"),
        )
        yield Shape(
            name=f"8 variances, {study}", study=study, asked=_select(*_many(8, "variance(x{0})"))
        )
        yield Shape(
            name=f"30 means and 30 stddevs, within, {study}",
            study=study,
            asked=_select(*_many(30, "avg(x{0})"), *_many(30, "stddev(x{0})")),
            terms=WITHIN,
        )
    yield Shape(
        name="100 counts of conditions",
        asked=_select(*_many(100, "count(*) FILTER (WHERE x{0} > 1)")),
    )
    yield Shape(name="900 counts of conditions", asked=_select(*_many(900, "count_if(x1>{0})")))
    yield Shape(name="1,400 sums", asked=_select(*_many(1400, "sum(x1+{0})")))
    yield Shape(
        name="50 sums, 50 counts, 50 means by county",
        asked=_select(
            *_many(50, "sum(x{0})"), *_many(50, "count(x{0})"), *_many(50, "avg(x{0})"), by="county"
        ),
        terms=TOGETHER,
    )
    yield Shape(name="100 ratios", asked=_select(*_many(100, "sum(x{0}) / count(x{0}) AS r{0}")))
    yield Shape(
        name="covariance by hand",
        asked=_select("avg(x1 * x2) - avg(x1) * avg(x2) AS c", "variance(x1)", "variance(x2)"),
    )
    yield Shape(name="30 products", asked=_select(*_many(30, "avg(x{0} * x2)")))
    yield Shape(
        name="filled means",
        asked=_select(*_many(30, "avg(filled + {0})")),
        study="change-one",
        terms=TOGETHER,
    )
    yield Shape(
        name="100 means, weights",
        asked=_select(*_many(100, "avg(x{0}) AS m{0}")),
        terms={
            "epsilon": "1",
            "weights": {
                f"m{number}": (
                    10 ** (number % 13 - 6) if number % 13 > 6 else f"1/{10 ** (6 - number % 13)}"
                )
                for number in range(100)
            },
        },
    )
    yield Shape(
        name="quantiles of 99 ranks", asked=_select(*_many(99, "quantile(income, 0.{0:02d}1)"))
    )
    yield Shape(name="900 quantiles", asked=_select(*_many(700, "quantile(x1, 0.{0:06d})")[1:]))
    yield Shape(
        name="quantiles of 99 columns by county",
        asked=_select(*_many(99, "median(x{0})"), by="county"),
    )
    yield Shape(
        name="quantiles, within",
        asked=_select(*_many(30, "quantile(income, 0.{0:02d}1)")),
        terms=WITHIN,
    )
    yield Shape(
        name="99 minima and maxima", asked=_select(*_many(99, "min(x{0})"), *_many(99, "max(x{0})"))
    )
    yield Shape(
        name="3,143 groups of 100 numbers",
        asked=_select(*_many(50, "avg(x{0})"), *_many(50, "sum(x{0})"), by="county"),
    )
    yield Shape(name="10⁹ groups", asked=_select("count(*)", "avg(x1)", by="million, thousand"))
    yield Shape(
        name="10¹⁵ groups",
        asked=_select("count(*)", "avg(x1)", by="million, thousand, hundred, k1, k2, k3"),
    )
    yield Shape(
        name="a million groups, simultaneous",
        asked=_select("count(*)", "avg(x1)", "stddev(x1)", by="million"),
        terms=TOGETHER,
    )


def _groups_and_rows() -> Iterator[Shape]:
    yield Shape(
        name="20 group columns",
        asked=_select("count(*)", by=", ".join(f"k{n}" for n in range(KEYS))),
    )
    yield Shape(
        name="bins of 2,000 edges",
        asked=_select("count(*)", by=f"bin(x1, {', '.join(map(str, range(2000)))})"),
    )
    yield Shape(
        name="a group column of a long CASE",
        asked=_select(
            "count(*)",
            by=_case(300, "'z'")
            .replace("THEN ", "THEN 'k")
            .replace(" WHEN", "' WHEN")
            .replace(" ELSE", "' ELSE")
            .replace("CASE'", "CASE"),
        ),
    )
    yield Shape(name="a CASE of 600 branches", asked=_select(f"sum({_case(600, '0')})"))
    yield Shape(
        name="50 long CASEs",
        asked=_select(*[f"sum({_case(12, str(n))}) AS s{n}" for n in range(50)]),
    )
    yield Shape(
        name="IN of 4,000 numbers",
        asked=_select("count(*)", where=f"x1 IN ({', '.join(map(str, range(3500)))})"),
    )
    yield Shape(
        name="IN of 2,000 texts",
        asked=_select("count(*)", where=f"word IN ({', '.join(_many(1_800, _QUOTED))})"),
    )
    yield Shape(
        name="900 ANDs",
        asked=_select("count(*)", where=" AND ".join(f"x{n % 100} > {n}" for n in range(900))),
    )
    yield Shape(
        name="900 ORs of NOTs",
        asked=_select("count(*)", where=" OR ".join(f"NOT x{n % 100} > {n}" for n in range(900))),
    )
    nested = "x1 > 1"
    for number in range(25):
        nested = (
            f"({nested} AND x{number} > 2) OR NOT (x{number} < 3)"
            if number % 2
            else f"NOT ({nested}) OR x2 > 1"
        )
    yield Shape(name="deep conditions", asked=_select("count(*)", where=nested))
    deep = "x1 > 1"
    for number in range(12):
        deep = (
            f"(({deep} AND x2 > {number}) OR"
            f" ({deep.replace('x1', 'x3')[:600] if number < 4 else 'x4 > 1'} AND x5 > 1))"
        )
    yield Shape(name="branching conditions", asked=_select("count(*)", where=deep))
    case = "x1"
    for number in range(9):
        case = (
            f"CASE WHEN {case} > {number} THEN {case} ELSE {number} END"
            if number < 7
            else f"abs({case})"
        )
    yield Shape(name="nested CASEs", asked=_select(f"sum({case})"))
    yield Shape(name="a long sum", asked=_select(f"sum({' + '.join(f'x{n}' for n in range(95))})"))
    yield Shape(
        name="long post-processing",
        asked=_select(f"{' + '.join(['sum(x1)'] * 95)} AS s", by="k1")
        + " ORDER BY "
        + ", ".join(["sum(x1) + 1"] * 800),
    )
    yield Shape(
        name="long HAVING",
        asked=_select("sum(x1)", by="k1")
        + " HAVING "
        + " OR ".join(f"sum(x1) > {n}" for n in range(900)),
    )
    covariances = [f"avg(x{n} * x{n + 1}) - avg(x{n}) * avg(x{n + 1}) AS c{n}" for n in range(30)]
    yield Shape(name="30 covariances", asked=_select(*covariances))
    yield Shape(name="100 means of whole numbers", asked=_select(*_many(100, "avg(w{0})")))
    yield Shape(
        name="60 means of whole numbers, change-one",
        asked=_select(*_many(60, "avg(w{0})")),
        study="change-one",
    )
    yield Shape(
        name="60 shares of conditions", asked=_select(*_many(60, "avg(x{0} > 1)"), by="county")
    )


def _parameters() -> Iterator[Shape]:
    yield Shape(
        name="a tiny ε",
        asked=_select(*_many(30, "avg(x{0})"), by="county"),
        terms={"epsilon": "0.000000001"},
    )
    yield Shape(
        name="a huge ε",
        asked=_select(*_many(30, "avg(x{0})"), by="county"),
        terms={"epsilon": "1000000"},
    )
    yield Shape(
        name="medians, a tiny ε",
        asked=_select(*_many(99, "median(x{0})")),
        terms={"epsilon": "0.0000005"},
    )
    yield Shape(
        name="a huge confidence",
        asked=_select(*_many(30, "stddev(x{0})"), by="county"),
        terms={"epsilon": "1", "confidence": "0.999999999"},
    )
    yield Shape(
        name="long digits of ε",
        asked=_select(*_many(10, "avg(x{0})")),
        terms={"epsilon": "1/3", "confidence": "0.9" + "1" * 15},
    )
    yield Shape(
        name="10⁹ rows a unit",
        study="units",
        asked=_select("count(*)", "avg(x1)", "stddev(x2)", "count(DISTINCT person)", by="county"),
        terms=TOGETHER,
    )
    yield Shape(
        name="10⁹ rows a unit, within",
        study="units",
        asked=_select("count(*)", "avg(x1)", "stddev(x2)", by="county"),
        terms=WITHIN,
    )
    yield Shape(
        name="means, within, change-one",
        study="change-one",
        asked=_select(*_many(20, "avg(x{0})"), by="county"),
        terms=WITHIN,
    )
    yield Shape(
        name="stddevs, within",
        asked=_select(*_many(12, "stddev(x{0})"), by="county"),
        terms={"within": "1", "size": 1000, "simultaneous": True},
    )


def _parsing() -> Iterator[Shape]:
    yield Shape(
        name="29 parentheses, 300 times",
        asked=_select(*[f"sum({'(' * 28}x{n % 100}{')' * 28}) AS s{n}" for n in range(290)]),
    )
    yield Shape(name="10,000 parentheses", asked=_select("(" * 9_900 + "x1" + ")" * 9_900))
    yield Shape(name="9,000 words", asked="SELECT " + "a " * 9_900)
    yield Shape(name="9,000 commas", asked=_select(*["1"] * 6_000))
    yield Shape(
        name="1,000 equal counts", asked=_select(*[f"count(*) AS c{n}" for n in range(1_000)])
    )
    yield Shape(name="9,000 minuses", asked=_select(f"sum({'-' * 90}x1)"))
    yield Shape(name="19,000 blanks", asked="SELECT count(*) FROM data" + " " * 19_000)
    yield Shape(name="an open comment", asked="SELECT /*" + "*/ /*" * 3_900)
    yield Shape(name="an open quote", asked="SELECT " + "''" * 9_900 + "'")
    yield Shape(name="a long number", asked=_select(f"sum(x1 + {'9' * 19_900})"))
    yield Shape(name="a large exponent", asked=_select("sum(x1 + 1e999999999)"))
    yield Shape(name="a long name", asked=_select(f"sum({'x' * 19_900})"))
    yield Shape(name="a million characters", asked="SELECT " + "x" * 10**6)
    yield Shape(name="many names that are almost columns", asked=_select(*_many(1500, "avg(y{0})")))
    yield Shape(
        name="a name that is almost one of 10,000 columns",
        study="wide",
        asked=_select("avg(measurement_12345x)"),
    )
    yield Shape(
        name="a long name that is none of 10,000 columns",
        study="wide",
        asked=_select(f"avg({'measurement_' * 1_500})"),
    )
    yield Shape(
        name="900 of 10,000 columns",
        study="wide",
        asked=_select(*_many(900, "avg(measurement_{0:05})")),
        terms=TOGETHER,
    )
    yield Shape(name="one of 10,000 columns", study="wide", asked=_select("avg(measurement_00001)"))
    yield Shape(name="an unknown function", asked=_select(f"{'averag' * 3_000}(x1)"))
    yield Shape(
        name="weights of unknown columns",
        asked=_select(*_many(100, "avg(x{0})")),
        terms={"epsilon": "1", "weights": {f"w{n}": 1 for n in range(10_000)}},
    )


def _reports() -> Iterator[Shape]:
    def report(
        name: str, tables: Mapping[str, str], study: Where = "add-remove", **terms: Any
    ) -> Shape:
        return Shape(
            name=name,
            kind="report",
            study=study,
            asked=dict(tables),
            terms=terms or {"epsilon": "1"},
        )

    for columns, sizes in (
        (6, (1, 2)),
        (7, (1, 2)),
        (7, (3,)),
        (10, (2,)),
        (12, (1, 2)),
        (20, (1,)),
        (20, (1, 2)),
    ):
        tables = _tables(columns, sizes)
        label = f"{len(tables)} tables of {' and '.join(map(str, sizes))} of {columns} columns"
        yield report(label, tables)
        yield report(f"{label}, within", tables, **WITHIN)
    yield report("21 tables of means, within", _tables(6, (1, 2), "avg(x1)"), **WITHIN)
    yield report("21 tables of sums, simultaneous", _tables(6, (1, 2), "sum(x1)"), **TOGETHER)
    counts = _tables(6, (1, 2)).items()
    means = {
        name: text.replace("count(*)", f"avg(x{number})")
        for number, (name, text) in enumerate(counts)
    }
    yield report("21 tables of 21 means", means)
    yield report("21 tables of 21 means, within", means, **WITHIN)
    yield report("20 tables of 3 columns, within", dict(list(_tables(6, (3,)).items())), **WITHIN)
    yield report(
        "20 tables of 4 of 8 columns, within", dict(list(_tables(8, (4,)).items())[:20]), **WITHIN
    )
    yield report("70 tables of 4 of 8 columns", _tables(8, (4,)))
    yield report("28 tables of 6 of 8 columns", _tables(8, (6,)))
    yield report("10 tables of 10 of 12 columns", dict(list(_tables(12, (10,)).items())[:10]))
    yield report("one table of 20 columns", _tables(20, (20,)))
    yield report("one table of 14 columns of 2 to 15 keys", _tables(14, (14,)))
    yield report(
        "60 conditions", {f"t{n}": _select(f"count_if(x{n} > 1)", by="k1") for n in range(58)}
    )
    yield report("500 equal tables", {f"t{n}": _select("count(*)", by="k1") for n in range(500)})
    yield report(
        "500 tables by WHERE",
        {f"t{n}": _select("count(*)", by="k1", where=f"thousand = {n + 1}") for n in range(500)},
    )
    yield report(
        "100 tables by WHERE of two columns, within",
        {
            f"t{n}": _select("count(*)", by="k1", where=f"thousand > {n + 1} AND hundred < {n + 3}")
            for n in range(90)
        },
        **WITHIN,
    )
    yield report("one table of 100 numbers", {"t": _select(*_many(100, "avg(x{0})"), by="k1")})
    yield report(
        "one table of 50 numbers, within",
        {"t": _select(*_many(50, "avg(x{0})"), by="k1")},
        **WITHIN,
    )
    yield report(
        "county, state and hundred",
        {
            "a": _select("count(*)", "avg(x1)", by="county"),
            "b": _select("count(*)", by="state"),
            "c": _select("count(*)", "avg(x1)", by="county, hundred"),
            "d": _select("count(*)", by="hundred"),
        },
    )
    yield report("county × thousand", {"a": _select("count(*)", by="county, thousand")})
    yield report(
        "a million", {"a": _select("count(*)", by="million"), "b": _select("avg(x1)", by="million")}
    )
    yield report(
        "a million, within",
        {"a": _select("count(*)", by="million"), "b": _select("avg(x1)", by="k1")},
        **WITHIN,
    )
    yield report(
        "a thousand by a thousand conditions",
        {f"t{n}": _select("count(*)", by="thousand", where=f"million > {n}") for n in range(10)},
    )
    yield report("20 tables, integers", _tables(6, (1, 2)), epsilon="1", integers=True)
    yield report("15 tables, rows", _tables(5, (1, 2)), epsilon="1", rows="rows.csv")
    yield report(
        "tables × numbers",
        {
            f"t{n}": _select(*_many(12, "avg(x{0})"), *_many(12, "sum(x{0})"), by=f"k{n % 20}")
            for n in range(40)
        },
        **WITHIN,
    )
    yield report("a report of a tiny ε", _tables(6, (1, 2)), epsilon="0.000000001")
    yield report("a report of a huge ε", _tables(6, (1, 2)), epsilon="1000000")
    counted = _many(3, "avg(x{0} > {0})") + _many(50, "count(x{0})")
    halves = {
        "a": _select(*counted[::2], by="k1, k2"),
        "b": _select(*counted[1::2], by="state, k5"),
    }
    yield report(
        "53 numbers of a tiny confidence",
        halves,
        "change-one",
        epsilon="0.1",
        confidence="0.000001",
    )
    yield report("a report of impossible errors", _tables(6, (1, 2)), within="0.000000000000000001")
    yield report(
        "weights far apart",
        _tables(6, (1, 2)),
        epsilon="1",
        weights={"t0": 10**6, "t6": "0.000001"},
    )
    yield report("501 tables", {f"t{n}": "SELECT count(*) FROM data" for n in range(501)})
    yield report(
        "500 tables of long texts",
        {
            f"t{n}": _select("count(*)", where=f"x1 IN ({', '.join(map(str, range(n, n + 2000)))})")
            for n in range(60)
        },
    )
    yield report("a report of units", _tables(6, (1, 2)), study="units", **WITHIN)


def _targets() -> Iterator[Shape]:
    """Reports whose errors are to be near each other, or far apart."""
    for columns, sizes in ((4, (1, 2)), (6, (1, 2)), (7, (3,)), (10, (1,)), (10, (2,))):
        for kind, number in (("counts", "count(*)"), ("means", "avg(x1)")):
            tables = _tables(columns, sizes, number)
            label = f"{len(tables)} tables of {kind} of {columns} columns"
            last = max(1, len(tables) - 1)
            for apart in (5, 1_000):
                within = {
                    name: f"{20 * apart ** (place / last):.3f}" for place, name in enumerate(tables)
                }
                yield Shape(
                    name=f"{label}, targets {apart} × apart",
                    kind="report",
                    asked=tables,
                    terms={"within": within},
                )
            first, *rest = tables
            far = {first: "20"} | dict.fromkeys(rest, "20000")
            yield Shape(
                name=f"{label}, one target far away",
                kind="report",
                asked=tables,
                terms={"within": far},
            )
            yield Shape(
                name=f"{label}, one target",
                kind="report",
                asked=tables,
                terms={"within": {first: "20"}},
            )
            yield Shape(  # scales near 1, whose noise is not that of another ε
                name=f"{label}, a small target",
                kind="report",
                asked=tables,
                terms={"within": "2", "size": 30},
            )


def _others() -> Iterator[Shape]:
    yield Shape(name="a discovery", kind="discover", asked=["open"], terms={"epsilon": "1"})
    yield Shape(
        name="a discovery of 10,000 names",
        kind="discover",
        asked=["open"] * 10_000,
        terms={"epsilon": "1"},
    )
    yield Shape(
        name="a discovery of a tiny ε",
        kind="discover",
        asked=["open"],
        terms={"epsilon": "0.000000001"},
    )
    yield Shape(
        name="a discovery of many keys a unit",
        kind="discover",
        study="units",
        asked=["open"],
        terms={"epsilon": "0.000000001"},
    )
    yield Shape(
        name="a discovery of an unknown column",
        kind="discover",
        study="wide",
        asked=["measurement_x"] * 100,
        terms={"epsilon": "1"},
    )
    yield Shape(name="a profile", kind="profile", asked=None, terms={"epsilon": "1"})
    yield Shape(
        name="a profile of 10,000 columns",
        kind="profile",
        study="wide",
        asked=[f"measurement_{n:05}" for n in range(MANY)],
        terms={"epsilon": "1"},
    )
    yield Shape(
        name="a profile of 10,000 unknown columns",
        kind="profile",
        study="wide",
        asked=[f"measuremend_{n:05}" for n in range(MANY)],
        terms={"epsilon": "1"},
    )


FAMILIES = {
    "questions of many numbers, simultaneous, within, with weights": tuple(_questions()),
    "questions of long conditions, CASEs, groups and formulas": tuple(_groups_and_rows()),
    "questions at extreme ε and confidences, and of many rows a unit": tuple(_parameters()),
    "texts that are hard to read": tuple(_parsing()),
    "reports of many tables, columns, numbers and sets": tuple(_reports()),
    "reports with near and far targets": tuple(_targets()),
    "discoveries and profiles": tuple(_others()),
}
"""All shapes by what they have in common.

Questions have their price, their curve and the JSON of the server.
"""

SHAPES = tuple(shape for family in FAMILIES.values() for shape in family)
