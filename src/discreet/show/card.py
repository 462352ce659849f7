"""The card of a study or a release: its privacy claims, in the terms in which they are compared.

    dp_flavor · privacy_loss · model · accounting · implementation

These are the sections and names of OpenDP's registry of deployments [OPD25]. They ask for what NIST
SP 800-226 [NIST25] says a claim needs: unit, neighbours, ε and δ, what is public, mechanisms,
treatment of floats, timing and randomness, composition, and post-processing. The custodian writes
the registry's `product` (whose data, and for what purpose).

Every figure comes from the policy, the ledger, the plan or its certificate. A card is made to be
published: it has no row count, no hash of the data and no path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from discreet.ask.declared import Declared, day
from discreet.ask.normal import decimal, quoted
from discreet.ask.policy import Policy
from discreet.ask.statistics import STATISTICS
from discreet.errors import InvalidParameter
from discreet.files.answer_file import AnswerFile
from discreet.files.writer import NOTHING, Kept, write
from discreet.ledger.chain import Entry, in_epsilon
from discreet.outside import read_fraction
from discreet.parameters import quote
from discreet.records import software
from discreet.release.answer import Answer
from discreet.release.plan import Plan
from discreet.release.public_size import public_size
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.report import Report
from discreet.release.statistics.counts import KnownCount
from discreet.release.statistics.ranks import ExtremeDesign, QuantileDesign
from discreet.release.study import Study

LAPLACE, CHOICE, PUBLIC = "discrete Laplace noise", "permute-and-flip", "none: the number is public"
DISCOVERY = "optimal partition selection"

_FORMAT = 1
_PROOF = Fraction(1)  # the ε at which a statistic is certified for the card of a study

_HANDLING = {
    "pre_processing": (
        "Bounds, keys and limits are declared, never taken from the data. A value outside its"
        " bounds is clamped to the nearer bound, a missing value is dropped or replaced as"
        " declared, and rows of a unit beyond its limits are ignored."
    ),
    "accuracy": (
        "Every released number has a confidence interval. It covers the noise that was added, but"
        " not sampling error or the effect of clamping."
    ),
    "floating_point": (
        "No rounding of a floating-point number can change the distribution of what is released:"
        " each value becomes an integer on a public grid, sums are exact, and noise is an exact"
        " integer sample. Floats that help to draw it have a proved bound of their error. Only the"
        " finished integer becomes a decimal."
    ),
    "timing": (
        "Timing channels are reduced, not eliminated: they are outside the promise. A server sends"
        " answers at multiples of a time quantum."
    ),
    "randomness": (
        "AES-256-CTR, keyed by the operating system. No seed can be given; if it fails, nothing is"
        " released."
    ),
}
_POST_PROCESSING = (
    "Estimates, intervals, ORDER BY, HAVING and LIMIT are computed from noisy integers only, and"
    " cost nothing."
)

_SECTIONS = ("dp_flavor", "privacy_loss", "model", "accounting", "implementation")
# a heading and its lines: a label and a text each
Section: TypeAlias = tuple[str, list[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Card:
    """The privacy claims of a study or a release, as JSON, YAML or HTML."""

    content: dict[str, Any]
    kept: Kept = NOTHING

    def to_json(self) -> str:
        """The card as JSON."""
        return json.dumps(self.content, ensure_ascii=False, indent=1) + "\n"

    def to_yaml(self) -> str:
        """The card as YAML, for a registry."""
        return "\n".join(_yaml(self.content)) + "\n"

    def to_html(self) -> str:
        """The card as a page to publish."""
        from discreet.show.html import table
        from discreet.show.report import classes, page

        sections = [(heading, [list(row) for row in rows]) for heading, rows in self.sections]
        parts = [
            f"<h2>{heading}</h2><div class='wide'>"
            f"{table(['', ''], cells, texts=(0, 1), most=None, attributes=classes)}</div>"
            for heading, cells in sections
        ]
        return page(f"Privacy card of {self.content['study']}", "".join(parts))

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the card to a new .json, .yaml or .html file; its path."""
        formats = {".json": self.to_json, ".yaml": self.to_yaml, ".html": self.to_html}
        ending, name = Path(path).suffix, quote(Path(path).name)
        if ending not in formats:
            raise InvalidParameter(
                f"the file of a card must end in {', '.join(formats)}, got {name}"
            )
        return write(path, formats[ending](), force=force, kept=self.kept)

    @property
    def sections(self) -> list[Section]:
        """The card for a reader: headings with lines."""
        flavor, loss, model, account, implementation = (self.content[name] for name in _SECTIONS)
        parameters = loss["privacy_parameters"]
        return [
            (
                "What is promised",
                [
                    ("unit", loss["privacy_unit_description"]),
                    ("neighbors", f"{loss['neighbors']}: {loss['neighbors_description']}"),
                    ("ε", parameters["epsilon"]),
                    ("δ", parameters["delta"]),
                    ("definition", f"{flavor['name']}, {flavor['output_measure']}"),
                    ("who is trusted", f"{model['trusted']} ({model['model_name'].lower()} model)"),
                ],
            ),
            (
                "What is public",
                [
                    *(("", fact) for fact in flavor["unprotected_quantities"]),
                    *((name, _facts_text(facts)) for name, facts in flavor["columns"].items()),
                ],
            ),
            (
                "What was spent",
                [
                    ("ε", f"{account['spent']} of {account['total']}, {account['left']} left"),
                    ("entries", f"{account['at_entry']:,}"),
                    *(
                        ("other study", f"{name}, on the same data: their ε add up")
                        for name in account.get("beside", ())
                    ),
                    ("composition", account["composition"]),
                    ("post-processing", account["post_processing"]),
                ],
            ),
            (
                "How it is done",
                [
                    *_mechanism_rows(implementation),
                    *((name.replace("_", " "), implementation[name]) for name in _HANDLING),
                ],
            ),
            ("Made by", [("", self.content["software"])]),
        ]

    def __repr__(self) -> str:
        loss = self.content["privacy_loss"]
        parameters = ", ".join(
            f"{name} {value}" for name, value in loss["privacy_parameters"].items()
        )
        return f"Card({self.content['study']}: {parameters} · unit {loss['privacy_unit']})"


def of(value: object) -> Card:
    match value:
        case Study():
            from discreet.verify.certificate import COVERS

            parameters = {"epsilon": decimal(value.budget.total), "delta": _delta(value)}
            head = value.budget.head
            return _card(
                value, parameters, head, mechanisms=_mechanisms_of_study(value), proofs_cover=COVERS
            )
        case Answer(plan=Plan() | ReportPlan() as plan) | AnswerFile(plan=plan) | Report(plan=plan):
            head = plan.study.budget.entry(value.entry) or plan.study.budget.head
            discovery = value.record.get("discovered", {"delta": "0"})
            parameters = {"epsilon": decimal(value.epsilon), "delta": discovery["delta"]}
            return _card(plan.study, parameters, head, mechanisms=_mechanisms(plan))
    raise InvalidParameter("a card needs a study of your own, or an answer or report of one")


def _card(study: Study, parameters: dict[str, str], head: Entry, **implementation: Any) -> Card:
    policy = study.policy
    pure = read_fraction(parameters["delta"]) == 0
    replaced = policy.neighbors == "change-one"
    content = {
        "discreet card": _FORMAT,
        "software": software(),
        "study": study.name,
        "dp_flavor": {
            "name": "Pure DP" if pure else "Approximate DP",
            "input_metric": f"{policy.neighbors}, in units",
            "bound_on_input_distance": 1,
            "output_measure": "max divergence" if pure else "smoothed max divergence",
            "bound_on_output_distance": parameters["epsilon"],
            "unprotected_quantities": _public(study),
            "columns": {name: _declared(declared) for name, declared in policy.columns.items()},
        },
        "privacy_loss": {
            "privacy_unit": policy.unit,
            "privacy_unit_description": _unit(policy),
            "neighbors": policy.neighbors,
            "neighbors_description": (
                f"one unit is {'replaced by any other' if replaced else 'added or removed'}"
            ),
            "privacy_parameters": parameters,
        },
        "model": {
            "model_name": "Central",
            "trusted": "the custodian, who holds the data, the ledger and its anchor",
        },
        "accounting": {
            "composition": (
                "Every ε is recorded on disk before a row is read. Their sum never exceeds the"
                " total."
            ),
            "total": decimal(in_epsilon(head.total)),
            "spent": decimal(in_epsilon(head.spent)),
            "left": decimal(in_epsilon(head.total - head.spent)),
            "at_entry": head.number,
            **({"beside": list(study.siblings)} if study.siblings else {}),
            "post_processing": _POST_PROCESSING,
        },
        "implementation": {**implementation, **_HANDLING},
    }
    return Card(content, study.kept)


def _public(study: Study) -> list[str]:
    facts = [
        "names, bounds, keys and bins of the declared columns",
        "every released question, its ε, and what is left of the total",
    ]
    if public_size(study.policy, study.engine).value:
        facts.append("the number of units")
    return facts


def _unit(policy: Policy) -> str:
    if policy.unit_column is None:
        return "Each row is a unit."
    groups = f" in at most {policy.max_groups:,} groups" if policy.max_groups else ""
    return f"All rows of one {policy.unit}, of which at most {policy.max_rows:,} are used{groups}."


def _declared(declared: Declared) -> dict[str, Any]:
    """The declaration of a column; of its keys, only their number."""
    facts: dict[str, Any] = {}
    if declared.bounds is not None:
        facts["bounds"] = [
            day(end) if isinstance(end, datetime) else decimal(Fraction(end))
            for end in declared.bounds
        ]
    if declared.keys is not None:
        facts["keys"] = len(declared.keys)
    if declared.discover:
        facts["keys_from"] = "a discovery"
    if declared.bins is not None:
        facts["bins"] = [decimal(edge) for edge in declared.bins]
    return facts


def _delta(study: Study) -> str:
    """The δ of the study's discovery, past or future."""
    delta = study.policy.delta if study.discovered is None else study.discovered.delta
    return "0" if delta is None else str(delta)


def _mechanisms(plan: Plan | ReportPlan) -> list[dict[str, Any]]:
    """The mechanisms of a release, each with its part of ε."""
    if isinstance(plan, ReportPlan):
        tables = [table.name for table in plan.layout.tables]
        return [
            {
                "name": LAPLACE,
                "statistics": tables,
                "epsilon": decimal(plan.epsilon),
                "sets": len(plan.measured),
            }
        ]
    titles = plan.titles()
    return [
        {
            "name": _mechanism(share.design),
            "statistics": [titles[name] for name in share.design.names],
            "epsilon": decimal(share.epsilon),
        }
        for share in plan.shares
    ]


def _mechanism(design: object) -> str:
    match design:
        case KnownCount():
            return PUBLIC
        case QuantileDesign() | ExtremeDesign():
            return CHOICE
    return LAPLACE


def _mechanisms_of_study(study: Study) -> list[dict[str, Any]]:
    """Each statistic that the study answers, with its proved loss; nothing is read or spent."""
    columns = study.policy.columns.items()
    numbers = [
        name for name, own in columns if own.bounds and not isinstance(own.bounds[0], datetime)
    ]
    subjects = {None: "", "number": quoted(numbers[0]) if numbers else None}
    rows: list[dict[str, Any]] = []
    for row in STATISTICS.values():
        column = subjects.get(row.menu.of) if row.menu is not None else None
        if column is None or row.menu is None:
            continue
        form = row.form.format(column=column, share="0.9")
        question = f"SELECT {form} FROM {quoted(study.policy.table)}"  # noqa: S608 - read by our own parser
        plan = study.sql(question, epsilon=_PROOF)
        proof = proved(plan)
        proof.pop("covers", None)
        rows.append(
            {"statistic": row.menu.name, "name": _mechanism(plan.shares[0].design), **proof}
        )
    if (
        any(declared.discover for declared in study.policy.columns.values())
        or study.discovered is not None
    ):
        rows.append({"statistic": "keys", "name": DISCOVERY, "delta": _delta(study)})
    return rows


def proved(plan: Plan | ReportPlan) -> dict[str, Any]:
    """The proved loss of a release, by the code that draws its noise; empty if all is public."""
    from discreet.verify.certificate import COVERS, certify

    if isinstance(plan, Plan) and not plan.cost:
        return {}
    certificate = certify(plan)
    if not certificate.holds:
        raise InvalidParameter(
            "the noise of this release is not proved to be enough; run discreet verify to see why"
        )
    return {
        "epsilon": decimal(certificate.epsilon),
        "proved_loss": str(certificate.loss),
        "covers": COVERS,
    }


def _yaml(value: Any, depth: int = 0) -> Iterator[str]:
    """Lines of YAML: blocks of names and items; scalars as in JSON, which YAML reads the same."""
    indent = "  " * depth
    for name, item in (
        value.items() if isinstance(value, dict) else ((None, item) for item in value)
    ):
        plain = (
            name is not None
            and re.fullmatch("[a-z_]{4,}", name)
            and name not in ("null", "true", "false")
        )
        head = indent + ("-" if name is None else f"{name if plain else _scalar(name)}:")
        if isinstance(item, dict | list) and item:
            yield head
            yield from _yaml(item, depth + 1)
        else:
            yield f"{head} {_scalar(item)}"


def _scalar(value: Any) -> str:
    """A value as JSON, with escapes for characters that YAML takes for a line end or refuses."""
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(
        "[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda letter: f"\\u{ord(letter[0]):04x}", text
    )


def _mechanism_rows(implementation: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for row in implementation["mechanisms"]:
        name = row["statistic"] if "statistic" in row else ", ".join(row["statistics"])
        cost = (
            f", ε {row['epsilon']}"
            if "epsilon" in row
            else f", δ {row['delta']}"
            if "delta" in row
            else ""
        )
        yield name, f"{row['name']}{cost}{_proof_text(row)}"
    if "proofs_cover" in implementation:
        yield "proofs cover", implementation["proofs_cover"]


def _proof_text(proof: dict[str, Any]) -> str:
    if "proved_loss" not in proof:
        return ""
    slack = read_fraction(proof["epsilon"]) - read_fraction(proof["proved_loss"])
    return f"; proved loss: at most ε{'' if slack == 0 else f' − {float(slack):.1g}'}"


def _facts_text(facts: dict[str, Any]) -> str:
    texts: dict[str, Callable[[Any], str]] = {
        "bounds": lambda ends: f"between {ends[0]} and {ends[1]}",
        "keys": lambda count: f"{count:,} keys",
        "keys_from": lambda source: f"keys from {source}",
        "bins": lambda edges: f"bins at {', '.join(edges)}",
    }
    return ", ".join(texts[name](value) for name, value in facts.items()) or "declared"
