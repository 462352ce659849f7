"""What `discreet verify` shows: certificates, replays, audits and caught controls, made on the reader's own machine.

    certificates   a plan for each statistic and relation, and each statistic of an array: an exact upper bound on the
                   loss of the noise and the designs, from what the code that releases draws
    replays        questions about columns that are missing throughout, run again with one row changed: no integer that
                   the engine hands over moves by more than Δ
    audits         each statistic at ε = 1, by its outputs alone: a lower bound, above ε in one run of 10⁹ at most
    controls       broken mechanisms that the same audit must catch

It takes about a minute, reads no data of anyone's and spends nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.ask.statistics import STATISTICS
from discreet.errors import InvalidParameter
from discreet.release.study import Study
from discreet.verify.auditor import Audit, audit
from discreet.verify.broken import Control, controls
from discreet.verify.certificate import Certificate, certify, check
from discreet.verify.rerun import Replay, replay
from discreet.verify.subjects import EPSILON, Subject, subjects

RELATIONS = ("change-one", "add-remove")

_COLUMNS = {"truth": ("well",), None: ("",)}
_ASKED = [
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
_MISSING = {"dropped": "age", "replaced": "pay"}
"""Columns in which every value is missing, and what the policy does with that."""

_ROWS = 10


def run(show: Callable[[str], None], *, as_json: bool = False) -> bool:
    """Show the report, line by line or as one JSON text; whether everything is as it must be."""
    tell: Callable[[str], None] = (lambda _: None) if as_json else show
    tell("Certificates: the loss of noise and designs that is proved, in exact arithmetic, for ε = 1")
    certificates = []
    for name, neighbors, make in _certificates():
        certificates.append((name, neighbors, _made(make)))
        tell(certificate_line(*certificates[-1]))
    tell("")
    tell("Replays: columns that are missing throughout, on the engine in use, with one row changed")
    replays = []
    for name, neighbors, work in _replays():
        replays.append((name, neighbors, work()))
        tell(replay_line(*replays[-1]))
    tell("")
    tell("Audits: the loss that is measured, from outputs on two neighbours, error rate 1e-9 each")
    audits = []
    for subject in subjects():
        audits.append((subject, _audited(subject)))
        tell(audit_line(*audits[-1]))
    tell("")
    tell("Controls: mechanisms that claim ε = 1 and break it, caught by the same audit")
    caught = []
    for control in controls():
        caught.append((control, _audited(control)))
        tell(control_line(*caught[-1]))
    good = [
        all(isinstance(found, Certificate) and found.holds for _, _, found in certificates),
        all(found.passed for _, _, found in replays),
        all(subject.least <= found.bound <= EPSILON for subject, found in audits),
        all(found.violated for _, found in caught),
    ]
    tell("")
    tell("Everything is as it must be." if all(good) else "SOMETHING IS WRONG: see the lines marked ✗.")
    if as_json:
        parts = {
            "certificates": [
                {"name": name, **(found.to_dict() if isinstance(found, Certificate) else {"refused": found})}
                for name, _, found in certificates
            ],
            "replays": [
                {"name": name, "neighbors": neighbors, "checks": found.checks, "passed": found.passed}
                for name, neighbors, found in replays
            ],
            "audits": [{"name": one.statistic, "neighbors": one.neighbors, **found.to_dict()} for one, found in audits],
            "controls": [{"name": control.name, **found.to_dict()} for control, found in caught],
            "passed": all(good),
        }
        show(json.dumps(parts, ensure_ascii=False))
    return all(good)


def check_file(path: str | PathLike[str]) -> Certificate:
    """The certificate in a file, computed again from its inputs; refused if it is not what they prove."""
    return check(path)


def certificate_line(name: str, neighbors: str, found: Certificate | str) -> str:
    """One line of the report; a text is why there is no certificate."""
    if isinstance(found, str):
        return f"✗ {name:<42} {neighbors:<11} no certificate: {found}"
    mark = "✓" if found.holds else "✗"
    slack = "exactly ε" if found.slack == 0 else f"ε − {float(found.slack):.1e}"
    return f"{mark} {name:<42} {neighbors:<11} loss ≤ {slack:<11} {found.log_ratio}"


def replay_line(name: str, neighbors: str, found: Replay) -> str:
    """One line of the report."""
    failed = ", ".join(check for check, held in found.checks.items() if not held)
    return f"{'✗' if failed else '✓'} {name:<42} {neighbors:<11} {f'{failed} differ' if failed else 'no row shows'}"


def audit_line(subject: Subject, found: Audit) -> str:
    """One line of the report."""
    mark = "✓" if subject.least <= found.bound <= EPSILON else "✗"
    return (
        f"{mark} {subject.statistic:<28} {subject.neighbors:<11} ε {EPSILON} · at least {found.bound:.3f} · "
        f"{found.draws:>9,} draws · {found.event}"
    )


def control_line(control: Control, found: Audit) -> str:
    """One line of the report."""
    mark = "✓" if found.violated else "✗"
    return f"{mark} {control.name:<34} at least {found.bound:.3f} · {found.draws:>10,} draws · {found.event}"


def _audited(one: Subject | Control) -> Audit:
    batch = one.batch if isinstance(one, Subject) else None
    return audit(one.mechanism, one.x, one.x_neighbor, epsilon=EPSILON, draws=one.draws, batch=batch)


def _made(make: Callable[[], Certificate]) -> Certificate | str:
    try:
        return make()
    except InvalidParameter as refused:
        return str(refused)


def _certificates() -> Iterator[tuple[str, str, Callable[[], Certificate]]]:
    """Of plans over an empty table, and of statistics of arrays; each with how it is called, and its relation."""
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
                for asked in (*_ASKED, *several):
                    for groups in ("", " GROUP BY place"):
                        plan = study.sql(" ".join(["SELECT", asked, "FROM data", groups]), epsilon=EPSILON)
                        named = f"{asked}{groups}{', by who' if unit else ''}"
                        yield named, neighbors, lambda plan=plan: certify(plan)  # type: ignore[misc]
    for name, given in [(row.name, given) for row in STATISTICS.values() for given in row.examples]:
        for neighbors in RELATIONS:
            for title, whole in (("integers", True), ("floats", False)):
                more = {**given, "whole": whole, "neighbors": neighbors, "epsilon": EPSILON}
                yield f"{name} of {title}", neighbors, lambda name=name, more=more: certify(name, **more)  # type: ignore[misc]
    for name, given in _OTHERS:
        yield name, "change-one", lambda name=name, given=given: certify(name, epsilon=EPSILON, **given)  # type: ignore[misc]


def _replays() -> Iterator[tuple[str, str, Callable[[], Replay]]]:
    """Of questions about columns in which every value is missing, on the engine that reads tables in memory."""
    columns = {"age": {"bounds": (0, 120)}, "pay": {"bounds": (0, 100), "missing": 50}}
    for neighbors in RELATIONS:
        with _study(_ROWS, neighbors=neighbors, columns=columns) as study:
            for what, column in _MISSING.items():
                for kind, functions in (("sums", ("count", "sum", "avg", "stddev")), ("ranks", ("median", "max"))):
                    asked = ", ".join(f"{function}({column})" for function in functions)
                    question = " ".join(["SELECT", asked, "FROM data"])
                    work = lambda asked=question: replay(study, asked, 0, epsilon=EPSILON)  # noqa: E731
                    yield f"{kind} of a column, all missing, {what}", neighbors, work


@contextmanager
def _study(rows: int, **terms: Any) -> Iterator[Study]:
    """A study over so many rows in which everything is missing, with a ledger in a temporary folder."""
    import pyarrow as pa

    from discreet.ask.policy import Policy

    kinds = {"who": pa.string(), "place": pa.string(), "age": pa.int64(), "pay": pa.float64(), "well": pa.bool_()}
    table = pa.table({name: pa.nulls(rows, kind) for name, kind in kinds.items()})
    policy = Policy(source=table, epsilon=1, version="0", **terms)
    with (
        tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder,
        Study(policy, ledger=Path(folder, "study.ledger")) as study,
    ):
        yield study
