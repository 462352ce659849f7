"""What `discreet verify` shows: certificates, audits and caught controls, made on the reader's own machine.

    certificates   a plan for each statistic and relation, and what has no plan: an exact upper bound on the loss
    audits         each statistic at ε = 1, by its outputs alone: a lower bound, above ε in one run of 10⁹ at most
    controls       broken mechanisms that the same audit must catch

It takes less than a minute, reads no data of anyone's and spends nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.verify.auditor import Audit, audit
from discreet.verify.broken import Control, controls
from discreet.verify.certificate import Certificate, certify, check
from discreet.verify.subjects import EPSILON, Subject, subjects

RELATIONS = ("change-one", "add-remove")

_ASKED = (
    "count(*)",
    "sum(age)",
    "avg(age)",
    "variance(pay)",
    "stddev(pay)",
    "median(age)",
    "quantile(pay, 0.9)",
    "min(pay)",
    "max(age)",
    "avg(well)",
    "count(DISTINCT who)",
)
_DESCRIBED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("histogram", {"bins": 50}),
    ("cdf", {"bounds": (0, 120)}),
    ("randomized_response", {}),
    ("laplace_mechanism", {"sensitivity": 1, "whole": True}),
    ("laplace_mechanism", {"sensitivity": "0.1", "changes": 3}),
)


def run(show: Callable[[str], None], *, as_json: bool = False) -> bool:
    """Show the report, line by line or as one JSON text; whether everything is as it must be."""
    tell: Callable[[str], None] = (lambda _: None) if as_json else show
    tell("Certificates: the loss that is proved, in exact arithmetic, for ε = 1")
    certificates = []
    for name, certificate in _certificates():
        certificates.append((name, certificate))
        tell(certificate_line(name, certificate))
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
        all(certificate.holds for _, certificate in certificates),
        all(subject.least <= found.bound <= EPSILON for subject, found in audits),
        all(found.violated for _, found in caught),
    ]
    tell("")
    tell("Everything is as it must be." if all(good) else "SOMETHING IS WRONG: see the lines marked ✗.")
    if as_json:
        parts = {
            "certificates": [{"name": name, **certificate.to_dict()} for name, certificate in certificates],
            "audits": [{"name": one.statistic, "neighbors": one.neighbors, **found.to_dict()} for one, found in audits],
            "controls": [{"name": control.name, **found.to_dict()} for control, found in caught],
            "passed": all(good),
        }
        show(json.dumps(parts, ensure_ascii=False))
    return all(good)


def check_file(path: str | PathLike[str]) -> Certificate:
    """The certificate in a file, computed again from its inputs; refused if it is not what they prove."""
    return check(path)


def certificate_line(name: str, certificate: Certificate) -> str:
    """One line of the report."""
    mark = "✓" if certificate.holds else "✗"
    slack = "exactly ε" if certificate.slack == 0 else f"ε − {float(certificate.slack):.1e}"
    return f"{mark} {name:<42} {certificate.neighbors:<11} loss ≤ {slack:<11} {certificate.log_ratio}"


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


def _certificates() -> Iterator[tuple[str, Certificate]]:
    """Of plans over an empty table, and of what has no plan."""
    import pyarrow as pa

    from discreet.ask.policy import Policy
    from discreet.release.study import Study

    kinds = {"who": pa.string(), "place": pa.string(), "age": pa.int64(), "pay": pa.float64(), "well": pa.bool_()}
    table = pa.table({name: pa.array([], kind) for name, kind in kinds.items()})
    columns = {
        "place": {"keys": ["north", "south", "west"]},
        "age": {"bounds": (0, 120)},
        "pay": {"bounds": (-3, 5), "missing": 0},
        "well": {},
    }
    for neighbors in RELATIONS:
        policy = Policy(
            source=table, unit="who", max_rows=3, neighbors=neighbors, epsilon=1, version="0", columns=columns
        )
        with (
            tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder,
            Study(policy, ledger=Path(folder, "study.ledger")) as study,
        ):
            for asked in _ASKED:
                for groups in ("", " GROUP BY place"):
                    plan = study.sql(" ".join(["SELECT", asked, "FROM people", groups]), epsilon=EPSILON)
                    yield f"{asked}{groups}", certify(plan)
    for name, given in _DESCRIBED:
        yield name, certify(name, epsilon=EPSILON, **given)
