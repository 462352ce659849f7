"""A profile of a study: checked, charged, read, drawn and recorded; free again for the same data.

    ε is shared equally by the columns; the unit's own column asks for the number of rows per unit

Each unit counts once, with one of its rows chosen by a hash, so that no limit on rows must be known
beforehand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet.ask.expression import Column
from discreet.ask.kinds import refused
from discreet.ask.normal import text as column_text
from discreet.ask.query import Group
from discreet.ask.scope import Scope
from discreet.engines.base import Exact, Request, Rows
from discreet.errors import InvalidParameter
from discreet.formats import readable, shown
from discreet.ledger.questions import canonical
from discreet.outside import read_json
from discreet.parameters import exact_epsilon
from discreet.release.account import answered, entry_of
from discreet.release.design import Secret
from discreet.release.mechanism import public_count
from discreet.release.profiles.octaves import ROW_LIMITS, OctaveDesign, UnitRowsDesign, octave_edges
from discreet.release.profiles.profile import ColumnProfile, Profile, UnitProfile
from discreet.release.public_size import public_size
from discreet.release.split import terms_of
from discreet.release.work import MOST_COLUMNS, refuse_more

if TYPE_CHECKING:
    from discreet.calibrate.sensitivity.terms import UnitLimits
    from discreet.release.study import Study

LEAST = 100
"""The least n·ε for each column: with fewer people hardly any octave stands out from the noise."""

_LEVEL = Fraction(19, 20)


@dataclass(frozen=True, kw_only=True)
class ProfilePlan:
    """A profile before its release: the columns, and what each costs."""

    study: Study
    columns: tuple[Column, ...]
    rows: bool
    """Whether the number of rows per unit is profiled, too."""
    epsilon: Fraction
    units: int | None
    """The number of units, if it is public."""

    @cached_property
    def designs(self) -> tuple[OctaveDesign, ...]:
        """One for each column, and one for the rows per unit."""
        octaves = [
            OctaveDesign(name=column.name, whole=_is_whole(self.study, column))
            for column in self.columns
        ]
        return (*octaves, *([UnitRowsDesign(name=self.study.policy.unit)] if self.rows else []))

    @property
    def share(self) -> Fraction:
        """The ε of each design."""
        return self.epsilon / len(self.designs)

    def terms(self, design: OctaveDesign) -> UnitLimits:
        """How far one unit can change the counts of a design."""
        return terms_of(self.study.policy, design.cells)

    @property
    def canonical(self) -> str:
        """The canonical text of the profile."""
        policy = self.study.policy
        bins = [design.cells for design in self.designs]
        parameters = {
            "columns": list(map(column_text, self.columns)),
            "bins": bins,
            "rows": self.rows,
        }
        return canonical(
            "profile", {**parameters, "neighbors": policy.neighbors, "unit": policy.unit}
        )

    def release(self, *, request_id: str | None = None, analyst: str | None = None) -> Profile:
        """Spend ε, then read, draw and record; asked again, return the recorded profile, free."""
        entry = entry_of(request_id)
        content, remaining = answered(
            self.study, entry, self.canonical, self.epsilon, self._answered, analyst=analyst
        )
        return self._read(content, entry, remaining)

    def fetched(self, design: OctaveDesign) -> Secret:
        """The exact counts of a design: each unit in one bin."""
        engine, policy = self.study.engine, self.study.policy
        if isinstance(design, UnitRowsDesign):
            return engine.units_by_rows(policy.unit, ROW_LIMITS).map(lambda counts: [counts])
        [column] = [column for column in self.columns if column.name == design.name]
        limit = None if policy.unit_column is None else 1
        return engine.fetch(
            Request(
                (Rows(),),
                (_octaves(column, design.whole),),
                unit=policy.unit_column,
                max_rows=limit,
            )
        )

    def drawn(self, design: OctaveDesign, exact: Exact[Any]) -> list[int]:
        """The noisy counts of a design."""
        estimate = design.estimate(exact, self.terms(design), self.share, _LEVEL)[design.name]
        counts: list[int] = estimate.values.tolist()
        return counts

    def _answered(self) -> bytes:
        counts = {design.name: self.drawn(design, self.fetched(design)) for design in self.designs}
        record = {
            "profile": counts,
            "rows": self.rows,
            "epsilon": str(self.epsilon),
            "units": self.units,
        }
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()

    def _read(self, content: bytes, entry: str, remaining: Fraction) -> Profile:
        record = read_json(content)
        columns: dict[str, ColumnProfile] = {}
        unit = None
        for design in self.designs:
            counts = tuple(record["profile"][design.name])
            scale = design.scale(self.terms(design), self.share)
            fields: dict[str, Any] = {
                "name": design.name,
                "counts": counts,
                "scale": scale,
                "epsilon": self.share,
            }
            if isinstance(design, UnitRowsDesign):
                unit = UnitProfile(**fields)
            else:
                columns[design.name] = ColumnProfile(
                    **fields, whole=design.whole, units=record["units"]
                )
        policy, epsilon = self.study.policy, self.epsilon
        return Profile(
            columns=columns,
            unit=unit,
            epsilon=epsilon,
            remaining=remaining,
            entry=entry,
            policy=policy,
        )


def profile_plan(study: Study, columns: Sequence[str] | None, epsilon: Any) -> ProfilePlan:
    """The plan of a profile; without names, of all numbers that have no bounds."""
    exact, scope = exact_epsilon(epsilon), Scope(study.policy, study.schema)
    if columns is None:
        columns = _open_columns(study, scope)
    elif (
        isinstance(columns, str)
        or not columns
        or not all(isinstance(name, str) for name in columns)
    ):
        raise InvalidParameter(
            'columns must be a list of names, as in profile(columns=["cost"], epsilon="0.1")'
        )
    refuse_more("a profile", len(columns), MOST_COLUMNS, "columns")
    rows = any(map(scope.is_unit, columns))
    by_name = {
        column.name: column
        for column in (scope.column(name) for name in columns if not scope.is_unit(name))
    }
    for column in by_name.values():
        if column.kind != "number":
            hint = (
                ', or declare type = "number" if it holds numbers' if column.kind == "text" else ""
            )
            raise refused(
                f"a profile needs numbers, but {column.name} is a {column.kind}; leave it out{hint}"
            )
    sorted_columns = tuple(by_name[name] for name in sorted(by_name))
    plan = ProfilePlan(
        study=study, columns=sorted_columns, rows=rows, epsilon=exact, units=_public_units(study)
    )
    if plan.units is not None:
        refuse_few(plan.units, exact, len(plan.designs))
    return plan


def refuse_few(units: int, epsilon: Fraction, columns: int = 1) -> None:
    """Refuse a profile of too few people, if their number is public; nothing is spent."""
    if units * epsilon < LEAST * columns:
        needed = math.ceil(LEAST * columns / epsilon)
        subject = "a profile" if columns == 1 else f"a profile of {columns} columns"
        more = (
            f"about epsilon {_round_up(Fraction(LEAST * columns, units))}"
            if units
            else "data with people"
        )
        raise refused(
            f"{subject} at epsilon {shown(epsilon)} needs about {needed:,} units, and there are"
            f" {units:,}: use {more}{', or fewer columns' if columns > 1 else ''}, or bounds that"
            " you know"
        )


def _round_up(number: Fraction) -> str:
    """The number in two digits, rounded up."""
    size = Fraction(10) ** (math.floor(math.log10(number)) - 1)
    return readable(float(math.ceil(number / size) * size), 6)


def _public_units(study: Study) -> int | None:
    if not public_size(study.policy, study.engine).value:
        return None
    return public_count(study.engine.units(study.policy.unit_column))


def _open_columns(study: Study, scope: Scope) -> list[str]:
    """The numbers without bounds, keys or bins, and the unit, if it is a column."""
    unit = study.policy.unit_column
    names = [
        name
        for name, declared in study.policy.columns.items()
        if name != unit
        and not (declared.bounds or declared.bins or declared.keys is not None or declared.discover)
        and scope.column(name, exact=True).kind == "number"
    ]
    if not names:
        raise refused(
            "every number that the policy declares has bounds, keys or bins; name the columns to"
            " profile"
        )
    return [*names, *([] if unit is None else [unit])]


def _is_whole(study: Study, column: Column) -> bool:
    return study.schema[column.name].whole if column.reading is None else column.reading.whole


def _octaves(column: Column, whole: bool) -> Group:
    """The octaves of a column as groups; missing values are in the last group."""
    edges = octave_edges(whole)
    return Group(
        column.name,
        column,
        [str(index) for index in range(len(edges) - 1)],  # type: ignore[arg-type]
        "missing",
        edges,
    )
