"""What `discreet verify` shows: additions, certificates, replays, audits and controls, on the
reader's own machine.

    additions      releases of random data on all paths: each number follows from the exact
                   integers, which a slow
                   reference computes from the rows, and from the noise that was drawn, at the
                   certificate's scale
    certificates   a plan for each statistic and relation, joint questions, reports, profiles, and
                   statistics of arrays:
                   an exact upper bound on the loss of the noise and the designs, from what the
                   release code draws
    replays        questions about columns without any value, run again with one row changed: no
                   integer from the engine
                   moves by more than Δ
    audits         each statistic at ε = 1, by its outputs alone: a lower bound, above ε in at most
                   one run of 10⁹
    controls       broken mechanisms that the same audit must catch

It takes a minute or two, reads no real data and spends nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from discreet.ask.expression import Column
from discreet.ask.policy import Policy
from discreet.ask.statistics import STATISTICS
from discreet.errors import DiscreetError, InvalidParameter
from discreet.release.plan import Plan
from discreet.release.profiles.plan import ProfilePlan
from discreet.release.reports.plan import ReportPlan
from discreet.release.study import Study
from discreet.verify.additions import Proof
from discreet.verify.additions_in_memory import SHORT
from discreet.verify.auditor import Audit, audit
from discreet.verify.certificate import Certificate, certify
from discreet.verify.mechanisms import EPSILON, Control, Subject, controls, subjects
from discreet.verify.rerun import Replay, replay

RELATIONS = ("change-one", "add-remove")

_COLUMNS = {"truth": ("well",), None: ("",)}
_AGGREGATES = [
    row.form.format(column=column, share="0.9")
    for row in STATISTICS.values()
    if row.menu is not None and row.menu.of != "unit"
    for column in _COLUMNS.get(row.menu.of, ("age", "pay") if row.base else ("age",))
]
_OTHERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("randomized_response", {}),
    ("laplace_mechanism", {"sensitivity": 1, "whole": True}),
    ("laplace_mechanism", {"sensitivity": "0.1", "changes": 3}),
)
# how the policy treats missing values, and a column of such values
_MISSING = {"dropped": "age", "replaced": "pay"}
_TABLES = {
    "places": "SELECT place, count(*), avg(age) FROM data GROUP BY place",
    "both": "SELECT place, well, count(*), sum(pay) FROM data GROUP BY place, well",
    "some": "SELECT count(*) FROM data WHERE place = 'north'",
}
"""A report with group columns, halves of numbers, and a condition."""

_ROWS = 10

# whether a check passed, its line of text, and its fields in JSON
Line: TypeAlias = tuple[bool, str, dict[str, Any]]


def run(show: Callable[[str], None], *, as_json: bool = False) -> bool:
    """Show the report, line by line or as one JSON text; True if every check passed."""
    tell: Callable[[str], None] = (lambda _: None) if as_json else show
    parts: dict[str, Any] = {}
    passed = True
    for name, title, lines in (
        (
            "additions",
            "what is released is the exact number plus the noise that was drawn",
            _additions(),
        ),
        (
            "certificates",
            "the loss of noise and designs that is proved, in exact arithmetic, for ε = 1",
            _proofs(),
        ),
        (
            "replays",
            "columns without any value, on the engine in use, with one row changed",
            _replay_lines(),
        ),
        (
            "audits",
            "the loss that is measured, from outputs on two neighbours, error rate 1e-9 each",
            _audit_lines(),
        ),
        (
            "controls",
            "mechanisms that claim ε = 1 and break it, caught by the same audit",
            _control_lines(),
        ),
    ):
        tell(f"{name.capitalize()}: {title}")
        parts[name] = []
        for good, line, fields in lines:
            passed &= good
            parts[name].append(fields)
            tell(f"{'✓' if good else '✗'} {line}")
        tell("")
    tell(
        "Everything is as it must be." if passed else "SOMETHING IS WRONG: see the lines marked ✗."
    )
    if as_json:
        show(json.dumps({**parts, "passed": passed}, ensure_ascii=False))
    return passed


def certificate_line(name: str, certificate: Certificate) -> str:
    """What a certificate proves, in one line."""
    loss = "ε" if certificate.slack == 0 else f"ε − {float(certificate.slack):.1e}"
    return f"{name:<42} {certificate.neighbors:<11} the loss is at most {loss}"


def _additions() -> Iterator[Line]:
    proof = Proof()
    for name, work in SHORT:
        before, wrong = proof.numbers, ""
        try:
            work(proof)
        except Exception as failure:  # of any kind: the data are random, and invented
            wrong = (
                str(failure)
                if isinstance(failure, DiscreetError)
                else f"{type(failure).__name__}: {failure}"
            )
        numbers = proof.numbers - before
        line = f"{name:<62} {wrong or f'{numbers:>9,} numbers'}"
        yield (
            not wrong,
            line,
            {"name": name, "numbers": numbers, **({"refused": wrong} if wrong else {})},
        )
    wrong = "; ".join(proof.law.improbable())
    line = (
        f"{'the noise of all of these has the size of its scale':<62}"
        f" {wrong or f'{proof.law.draws:>9,} draws'}"
    )
    yield (
        not wrong,
        line,
        {"name": "noise", "numbers": proof.law.draws, **({"refused": wrong} if wrong else {})},
    )


def _proofs() -> Iterator[Line]:
    for name, neighbors, make in _certificates():
        try:
            certificate = make()
        except InvalidParameter as refused:
            line = f"{name:<42} {neighbors:<11} no certificate: {refused}"
            yield False, line, {"name": name, "refused": str(refused)}
        else:
            yield (
                certificate.holds,
                certificate_line(name, certificate),
                {"name": name, **certificate.to_dict()},
            )


def _replay_lines() -> Iterator[Line]:
    for name, neighbors, work in _replays():
        rerun = work()
        failed = ", ".join(check for check, passed in rerun.checks.items() if not passed)
        line = f"{name:<42} {neighbors:<11} {f'{failed} differ' if failed else 'no row shows'}"
        fields = {
            "name": name,
            "neighbors": neighbors,
            "checks": rerun.checks,
            "passed": rerun.passed,
        }
        yield rerun.passed, line, fields


def _audit_lines() -> Iterator[Line]:
    for subject in subjects():
        audited = _audit(subject, subject.batch)
        line = (
            f"{subject.statistic:<28} {subject.neighbors:<11} ε {EPSILON} ·"
            f" {_measurement(audited, 9)}"
        )
        fields = {"name": subject.statistic, "neighbors": subject.neighbors, **audited.to_dict()}
        yield subject.least <= audited.bound <= EPSILON, line, fields


def _control_lines() -> Iterator[Line]:
    for control in controls():
        audited = _audit(control)
        line = f"{control.name:<34} {_measurement(audited, 10)}"
        yield audited.violated, line, {"name": control.name, **audited.to_dict()}


def _audit(case: Subject | Control, batch: int | None = None) -> Audit:
    return audit(
        case.mechanism, case.x, case.x_neighbor, epsilon=EPSILON, draws=case.draws, batch=batch
    )


def _measurement(audited: Audit, width: int) -> str:
    return f"at least {audited.bound:.3f} · {audited.draws:>{width},} draws · {audited.event}"


def _certificates() -> Iterator[tuple[str, str, Callable[[], Certificate]]]:
    """Certificates of plans over an empty table and of statistics of arrays, with their names and
    relations.
    """
    columns = {
        "place": {"keys": ["north", "south", "west"]},
        "age": {"bounds": (0, 120)},
        "pay": {"bounds": (-3, 5), "missing": 0},
        "well": {},
    }
    for neighbors in RELATIONS:
        for unit in ({"unit": "who", "max_rows": 3}, {}):
            several = ["count(DISTINCT who)"] if unit else []
            with _study(0, neighbors=neighbors, columns=columns, **unit) as study:
                for aggregate in (*_AGGREGATES, *several):
                    for groups in ("", " GROUP BY place"):
                        plan = study.sql(
                            " ".join(["SELECT", aggregate, "FROM data", groups]), epsilon=EPSILON
                        )
                        yield (
                            f"{aggregate}{groups}{', by who' if unit else ''}",
                            neighbors,
                            partial(certify, plan),
                        )
                for name, joint in _together(study):
                    yield f"{name}{', by who' if unit else ''}", neighbors, partial(certify, joint)
    of_arrays = [
        (row.name, parameters) for row in STATISTICS.values() for parameters in row.examples
    ]
    for name, parameters in (*of_arrays, ("bounds", {})):
        for neighbors in RELATIONS:
            for title, whole in (("integers", True), ("floats", False)):
                terms = {**parameters, "whole": whole, "neighbors": neighbors, "epsilon": EPSILON}
                yield f"{name} of {title}", neighbors, partial(certify, name, **terms)
    for name, parameters in _OTHERS:
        yield name, "change-one", partial(certify, name, epsilon=EPSILON, **parameters)


def _together(study: Study) -> Iterator[tuple[str, Plan | ReportPlan | ProfilePlan]]:
    """Questions, a report and a profile whose numbers are measured together."""
    query = "SELECT count(*), avg(age), avg(pay), stddev(pay) FROM data"
    yield "joint question of 4 numbers", study.sql(query, epsilon=EPSILON)
    yield (
        "joint question of 4 numbers GROUP BY place",
        study.sql(f"{query} GROUP BY place", epsilon=EPSILON),
    )
    yield "report of 3 tables", study.report(_TABLES, epsilon=EPSILON)
    columns = (
        Column("age", "number"),
        Column("pay", "number"),
    )
    units = study.policy.unit_column is not None
    yield (
        "profile of 2 columns",
        ProfilePlan(study=study, columns=columns, rows=units, epsilon=EPSILON, units=None),
    )


def _replays() -> Iterator[tuple[str, str, Callable[[], Replay]]]:
    """Replays of questions about columns in which every value is missing, on the engine of tables
    in memory.
    """
    columns = {"age": {"bounds": (0, 120)}, "pay": {"bounds": (0, 100), "missing": 50}}
    for neighbors in RELATIONS:
        with _study(_ROWS, neighbors=neighbors, columns=columns) as study:
            for treatment, column in _MISSING.items():
                for kind, functions in (
                    ("sums", ("count", "sum", "avg", "stddev")),
                    ("ranks", ("median", "max")),
                ):
                    aggregates = ", ".join(f"{function}({column})" for function in functions)
                    question = " ".join(["SELECT", aggregates, "FROM data"])
                    work = partial(replay, study, question, 0, epsilon=EPSILON)
                    yield f"{kind} of a column, all missing, {treatment}", neighbors, work


@contextmanager
def _study(rows: int, **terms: Any) -> Iterator[Study]:
    """A study over so many rows without any value, with a ledger in a temporary folder."""
    kinds = {
        "who": pa.string(),
        "place": pa.string(),
        "age": pa.int64(),
        "pay": pa.float64(),
        "well": pa.bool_(),
    }
    table = pa.table({name: pa.nulls(rows, kind) for name, kind in kinds.items()})
    policy = Policy(source=table, epsilon=1, version="0", **terms)
    with (
        tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder,
        Study(policy, ledger=Path(folder, "study.ledger")) as study,
    ):
        yield study
