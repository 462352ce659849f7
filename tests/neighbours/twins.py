"""Known-bad twins: each breaks one thing, and the search must find it among the very cases of the
tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

from discreet.calibrate.sensitivity.terms import UnitLimits
from discreet.engines.base import Exact, OnGrid, Request, Rows, Squares, Total
from discreet.engines.duckdb import DuckDB
from discreet.errors import InvalidParameter
from discreet.records import from_whole, unpack
from discreet.release import design as designs
from discreet.release import plan as plans
from discreet.release import split as shares
from discreet.release.plan import Plan
from discreet.release.statistics import counts, moments


def _secret(exact: Exact[Any]) -> Any:
    """What a careless piece of code could do: look at a secret without anybody noticing."""
    return exact._Exact__secret  # type: ignore[attr-defined]


@contextmanager
def empty_sums_read_as_zero() -> Iterator[None]:
    """An engine gives NULL for the sum of an empty column, and NULL is read as 0, not as n times
    what missing is.
    """
    real = DuckDB.fetch

    def fetch(self: DuckDB, request: Request) -> Exact[Any]:
        measures = request.measures
        sums = [
            m for m in measures if isinstance(m, Total | Squares) and m.value.missing is not None
        ]
        if not sums or request.groups:
            return real(self, request)
        there = _secret(
            real(self, replace(request, measures=tuple(Rows(m.value.of) for m in sums)))
        )
        empty = {m for m, [count] in zip(sums, there, strict=True) if count == 0}
        return real(self, request).map(
            lambda found: [
                [0] if m in empty else column for m, column in zip(measures, found, strict=True)
            ]
        )

    with mock.patch.object(DuckDB, "fetch", fetch):
        yield


@contextmanager
def scales_too_small() -> Iterator[None]:
    """Noise that is 5 % too small."""
    real = moments.noisy_columns

    def noisy_columns(totals: Any, scales: list[Fraction], *given: Any, **named: Any) -> Any:
        return real(totals, [scale * Fraction(19, 20) for scale in scales], *given, **named)

    with (
        mock.patch.object(counts, "noisy_columns", noisy_columns),
        mock.patch.object(moments, "noisy_columns", noisy_columns),
    ):
        yield


def _terms(name: str, less: Callable[[int], int]) -> AbstractContextManager[Any]:
    real = getattr(UnitLimits, name)
    return mock.patch.object(UnitLimits, name, property(lambda self: less(real.func(self))))


@contextmanager
def sensitivity_less_one() -> Iterator[None]:
    """Δ − 1 in place of Δ, where more than one row can change."""
    with (
        _terms("row_changes", lambda moved: max(1, moved - 1)),
        _terms("factor", lambda moved: max(1, moved - 1)),
    ):
        yield


@contextmanager
def relation_mistaken() -> Iterator[None]:
    """Change-one calibrated as add-remove."""
    real = shares.UnitLimits
    with mock.patch.object(
        shares, "UnitLimits", lambda **given: real(**{**given, "replaced": False})
    ):
        yield


@contextmanager
def upper_clamp_forgotten() -> Iterator[None]:
    """Values above the upper bound count as they are, up to three ranges beyond."""

    def unclamped(of: Any, grid: Any, missing: Any) -> OnGrid:
        return OnGrid(of, replace(grid, upper=grid.upper + 3 * grid.width), missing)

    with mock.patch.object(designs, "OnGrid", unclamped):
        yield


def _requests(**changed: Any) -> AbstractContextManager[Any]:
    real = plans.Request
    return mock.patch.object(plans, "Request", lambda **given: real(**{**given, **changed}))


@contextmanager
def rows_not_limited() -> Iterator[None]:
    """max_rows is declared and not applied."""
    with _requests(max_rows=10**6):
        yield


@contextmanager
def groups_not_limited() -> Iterator[None]:
    """max_groups is declared and not applied."""
    with _requests(max_groups=None):
        yield


def _rows_of_groups(plan: Plan) -> list[int]:
    request = Request(measures=(Rows(),), groups=plan.query.groups, where=plan.query.where)
    return list(_secret(plan.study.engine.fetch(request))[0])


def _answering(change: Callable[[Plan, dict[str, Any]], None]) -> AbstractContextManager[Any]:
    real = Plan._answered

    def answered(self: Plan, *given: Any) -> bytes:
        record = unpack(real(self, *given)).whole()
        change(self, record)
        return from_whole(record).pack()

    return mock.patch.object(Plan, "_answered", answered)


@contextmanager
def keys_from_data() -> Iterator[None]:
    """Groups that nobody is in are left out."""

    def change(plan: Plan, record: dict[str, Any]) -> None:
        if len(plan.query.groups) == 1:
            sizes = _rows_of_groups(plan)
            [name] = record["keys"]
            there = [at for at, size in enumerate(sizes) if size]
            record["keys"][name] = [record["keys"][name][at] for at in there]
            for ends in record["numbers"].values():
                ends.update({end: [column[at] for at in there] for end, column in ends.items()})

    with _answering(change):
        yield


@contextmanager
def refusal_by_data() -> Iterator[None]:
    """A question about fewer than three rows is refused."""

    real = Plan.release

    def release(self: Plan, **named: Any) -> Any:
        if sum(_rows_of_groups(self)) < 3:
            raise InvalidParameter("too few rows; ask about more")
        return real(self, **named)

    with mock.patch.object(Plan, "release", release):
        yield


@contextmanager
def size_taken_as_public() -> Iterator[None]:
    """The number of rows is used as it is, whether it is public or not."""
    real = shares.UnitLimits
    with mock.patch.object(
        shares, "UnitLimits", lambda **given: real(**{**given, "public": given["cells"] == 1})
    ):
        yield


@contextmanager
def ranks_twice_as_sharp() -> Iterator[None]:
    """A choice at twice the rate."""
    real = UnitLimits.ranks
    with mock.patch.object(UnitLimits, "ranks", lambda self, share: real(self, share) / 2):
        yield


TWINS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    twin.__name__: twin
    for twin in (
        empty_sums_read_as_zero,
        scales_too_small,
        sensitivity_less_one,
        relation_mistaken,
        upper_clamp_forgotten,
        rows_not_limited,
        groups_not_limited,
        keys_from_data,
        refusal_by_data,
        size_taken_as_public,
        ranks_twice_as_sharp,
    )
}
