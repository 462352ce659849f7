"""Certificates: an exact upper bound on the privacy loss of a release, which anyone can recompute.

    certificate = certify(plan)                                      a plan, of a report too: free
    certificate = certify("mean", bounds=(0, 120), epsilon="0.1")    a statistic of an array
    certificate = certify(release, bounds=(0, 120), n=1000)          a release that was made
    certificate.save("mean.certificate.json"); check("mean.certificate.json")

The bound is Σ over all parts of `Part.loss`, in fractions. It follows from what one unit can change
and from the scales, steps and rates that the release code draws with: the code runs on zeros,
choices also on small tables with and without a unit, and its draws are recorded. ε is only compared
with the bound. `check` starts from the inputs in the file and recomputes everything else: a file
that differs, or whose bound exceeds its ε, is refused. A certificate covers the noise and the
designs. It does not cover the engine, which turns rows into integers (`replay` and the engine's own
checks do), nor the sampler, which tests compare with its law value by value, nor the authorship of
the file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

from flint import ctx

from discreet.errors import InvalidParameter
from discreet.files.writer import write
from discreet.formats import shown
from discreet.outside import Unreadable, read_fraction, read_json
from discreet.parameters import exact_count, quote
from discreet.release.plan import Plan
from discreet.release.profiles.plan import ProfilePlan
from discreet.release.release import Release
from discreet.release.reports.plan import ReportPlan
from discreet.verify.loss import Part, fields_of, part_from
from discreet.verify.parts import NAMES, certified_twin, parts_of

_FORMAT = 1
_BITS = 192  # of the balls that are shown: 57 digits
_LARGEST_FILE = 10**8

COVERS = (
    "the noise and the designs, as the code that releases draws them; not the engine, which a"
    " replay looks at"
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Certificate:
    """A claim, its parts, and the bound that they prove."""

    epsilon: Fraction
    """The claimed ε."""
    parts: tuple[Part, ...]
    neighbors: str
    unit: str
    max_rows: int
    query: str
    version: str
    """The version of the package that draws the noise."""

    @property
    def loss(self) -> Fraction:
        """The proved upper bound on the privacy loss."""
        return Fraction(sum(part.loss for part in self.parts))

    @property
    def slack(self) -> Fraction:
        """The claimed ε minus the bound."""
        return self.epsilon - self.loss

    @property
    def holds(self) -> bool:
        """Whether the claim is proved, for each part and for their sum."""
        return self.slack >= 0 and all(part.loss <= part.epsilon for part in self.parts)

    @property
    def log_ratio(self) -> str:
        """The log-ratio of probabilities at the largest moves, in closed form: an Arb ball."""
        with ctx.workprec(_BITS):
            return str(
                sum((part.log_ratio for part in self.parts[1:]), self.parts[0].log_ratio).str(30)
            )

    def to_dict(self) -> dict[str, Any]:
        """The inputs and everything computed from them, in JSON's types."""
        return {
            "discreet certificate": _FORMAT,
            **{
                name: getattr(self, name)
                for name in ("version", "query", "neighbors", "unit", "max_rows")
            },
            **{
                name: str(getattr(self, name)) for name in ("epsilon", "loss", "slack", "log_ratio")
            },
            "holds": self.holds,
            "covers": COVERS,
            "parts": [fields_of(part) for part in self.parts],
        }

    def to_json(self) -> str:
        """The certificate as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=1)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the certificate to a new file."""
        write(path, self.to_json() + "\n", force=force)

    def __repr__(self) -> str:
        def scales(part: Part) -> str:
            pairs = zip(part.scales, part.steps, strict=True)
            return ", ".join(shown(scale * step) for scale, step in pairs) or "–"

        lines = [
            f"  {part.statistic}: Δ {shown(part.sensitivity)} ({part.law}), scale {scales(part)},"
            f" loss {shown(part.loss)} of {shown(part.epsilon)}"
            for part in self.parts
        ]
        word = "proved" if self.holds else "NOT proved"
        below = "exactly ε" if self.slack == 0 else f"{float(self.slack):.2g} below ε"
        head = (
            f"ε {shown(self.epsilon)} {word}: loss at most {float(self.loss):.9g}, {below} ·"
            f" {self.neighbors}"
        )
        return "\n".join([head, *lines, f"  covers {COVERS}"])


def certify(
    subject: Plan | ReportPlan | ProfilePlan | Release | str, **parameters: Any
) -> Certificate:
    """Prove an upper bound on the privacy loss of a plan, a release or a statistic.

    No data is read, and nothing is spent.

    Parameters
    ----------
    subject : plan, Release or text
        The plan of a question, a report or a profile; a release; or the name of a statistic of an
        array.
    **parameters
        For a release or a statistic, the parameters of the call: `epsilon`, `bounds`, `n`, and so
        on.

    Returns
    -------
    Certificate
        `loss` is the bound, and `holds` says whether it is at most ε.

    Examples
    --------
    >>> certify("count", epsilon="0.1").holds
    True

    """
    if isinstance(subject, Release):
        parameters = _parameters_of(subject, **parameters)
        subject = subject.statistic
    if isinstance(subject, Plan | ReportPlan | ProfilePlan):
        policy, query = subject.study.policy, subject.canonical
        parts = parts_of(subject)
        epsilon = subject.cost if isinstance(subject, Plan) else subject.epsilon
        neighbors = str(policy.neighbors)
        unit, rows = policy.unit, policy.max_rows or 1
    elif isinstance(subject, str):
        _, parts = certified_twin(subject, **parameters)
        epsilon = Fraction(sum(part.epsilon for part in parts))
        neighbors = parts[0].neighbors
        unit = "row"
        rows = 1
        described = {name: str(value) for name, value in sorted(parameters.items())}
        query = json.dumps([subject, described], separators=(",", ":"))
    else:
        raise InvalidParameter(
            "certify takes a plan, a release or the name of a statistic, got a"
            f" {type(subject).__name__}"
        )
    return Certificate(
        epsilon=epsilon,
        parts=tuple(parts),
        neighbors=neighbors,
        unit=unit,
        max_rows=rows,
        query=query,
        version=version("discreet"),
    )


def check(path: str | PathLike[str]) -> Certificate:
    """Read a certificate and recompute it; `InvalidParameter` if its inputs do not prove it.

    Parameters
    ----------
    path : path
        A file that `Certificate.save` wrote.

    Returns
    -------
    Certificate
        The recomputed certificate.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     certify("count", epsilon=1).save(f"{folder}/count.json")
    ...     check(f"{folder}/count.json").loss
    Fraction(1, 1)

    """
    file = Path(path)
    try:
        if file.stat().st_size > _LARGEST_FILE:
            raise InvalidParameter(f"{file.name}: a certificate must be at most 100 MB")
        stated = read_json(file.read_bytes())
    except OSError as failure:
        raise InvalidParameter(f"{file.name} cannot be read: {failure.strerror}") from None
    except Unreadable as reason:
        raise InvalidParameter(f"{file.name} must be a certificate in JSON: {reason}") from None
    if not isinstance(stated, dict) or stated.get("discreet certificate") != _FORMAT:
        raise InvalidParameter(
            f"{file.name} must be a certificate of format {_FORMAT}, as certify(…).save writes it"
        )
    certificate = _read(stated, file.name)
    computed = certificate.to_dict()
    for name, value in computed.items():
        if stated.get(name) != value or type(stated.get(name)) is not type(value):
            raise InvalidParameter(
                f"{file.name}: {_field_name(name, stated.get(name), value)} is not what its inputs"
                " give"
            )
    if set(stated) != set(computed):
        raise InvalidParameter(
            f"{file.name}: a certificate has no {sorted(set(stated) - set(computed))[0]!r}"
        )
    if not certificate.holds:
        loss, claimed = certificate.loss, certificate.epsilon
        raise InvalidParameter(
            f"{file.name}: the loss, {quote(loss)}, exceeds the claimed ε, {quote(claimed)}"
        )
    return certificate


def _read(stated: dict[str, Any], name: str) -> Certificate:
    try:
        parts = tuple(part_from(fields) for fields in stated["parts"])
        about: dict[str, Any] = {
            field: stated[field] for field in ("neighbors", "unit", "query", "version")
        }
        if not all(isinstance(text, str) for text in about.values()):
            raise TypeError
        about["max_rows"] = exact_count("max_rows", stated["max_rows"])
        certificate = Certificate(epsilon=read_fraction(stated["epsilon"]), parts=parts, **about)
    except Unreadable as reason:
        raise InvalidParameter(f"{name}: {reason}") from None
    except InvalidParameter:
        raise
    except (KeyError, TypeError, ValueError):
        raise InvalidParameter(
            f"{name}: a certificate must have epsilon, neighbors, unit, max_rows and parts"
        ) from None
    if not parts or any(
        part.neighbors != certificate.neighbors or part.rows != certificate.max_rows
        for part in parts
    ):
        raise InvalidParameter(
            f"{name}: all parts must have the certificate's neighbors and max_rows"
        )
    if sum(part.epsilon for part in parts) != certificate.epsilon:
        raise InvalidParameter(
            f"{name}: the parts must add up to the claimed ε, {quote(certificate.epsilon)}"
        )
    return certificate


def _field_name(name: str, stated: Any, computed: Any) -> str:
    if name == "parts" and isinstance(stated, list):
        for part, expected in zip(stated, computed, strict=False):
            for key, value in expected.items():
                if part.get(key) != value:
                    return f"the {key} of {expected['statistic']}"
    return f"the {name}"


def _parameters_of(release: Release, *, n: Any = None, **parameters: Any) -> dict[str, Any]:
    """All parameters of the call of a release, which must give the same scale and step on zeros."""
    if release.statistic not in NAMES:
        raise InvalidParameter(
            f"a release of a {release.statistic} is certified by its parts: certify them one by one"
        )
    if n is None and release.neighbors == "change-one":
        raise InvalidParameter(
            "n must be given for a release under change-one: it is public, and the scale depends"
            " on it"
        )
    parameters |= {
        "n": 1 if n is None else n,
        "neighbors": release.neighbors,
        "epsilon": release.epsilon,
    }
    twin, _ = certified_twin(release.statistic, **parameters)
    for name in ("scale", "step", "sensitivity", "missing"):
        if getattr(twin, name) != getattr(release, name):
            raise InvalidParameter(
                f"these parameters are not those of the release: its {name} is"
                f" {getattr(release, name) or 'impossible'}"
            )
    return parameters
