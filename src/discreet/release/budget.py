"""What a study may spend: its part of a ledger, which its first spend creates.

Until then the total and the promise are those of the policy, which may be corrected: a plan, and
whatever refuses one, fixes nothing. From the first spend or allotment on they are those of the
ledger, and another policy is refused. A ledger on PostgreSQL is created by `discreet ledger create`
alone.

The first spend of this process compares the promise once more, while the study is locked: as long
as nothing was spent, `discreet ledger create` may have corrected it, or another process may have
been first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from fractions import Fraction
from pathlib import Path
from threading import Event, Lock
from typing import Any

from discreet.ask.policy import Policy
from discreet.errors import InvalidParameter
from discreet.ledger.chain import Entry
from discreet.ledger.grant import Grant
from discreet.ledger.ledger import Ledger
from discreet.ledger.place import Place, places
from discreet.ledger.refusals import (
    foreign,
    no_share,
    refuse_above,
    refuse_another_promise,
    require_text,
)
from discreet.parameters import UNIT, charge, exact_epsilon


class Budget:
    """The part of a ledger that belongs to a study."""

    def __init__(self, where: Place | Ledger, study: str, policy: Policy | None = None) -> None:
        """The budget of a study with this policy; without one, what a ledger already holds."""
        self.study = study
        self._promised = None if policy is None else (total_of(policy), policy.promise)
        self._place = where if isinstance(where, Place) else None
        self._ledger = where if isinstance(where, Ledger) else None
        self._making, self._is_fixed = Lock(), Event()
        require_text("study", study)
        if self._promised is not None:
            exact_epsilon(self.total)
        if self._place is not None:
            places(self._place.where, self._place.anchor)  # refuses an impossible address
            self._place.refuse_missing_anchor()
            if self._place.is_new:
                self._place.refuse_second_budget()
        if self._ledger is not None:
            self._refuse_another(self._ledger)
        self.known()

    @property
    def total(self) -> Fraction:
        """The total of the policy, or else of the ledger."""
        return self.made().total(self.study) if self._promised is None else self._promised[0]

    def known(self) -> Ledger | None:
        """The ledger; None as long as none holds the study: then nothing was ever spent."""
        return self._ledger or self._held(self._opened)

    def made(self) -> Ledger:
        """The ledger, which is created if there is none: then it holds total and promise."""
        ledger = self.known() or self._held(self._created)
        if ledger is None:
            raise foreign(self.study)
        return ledger

    def _held(self, find: Callable[[Place], Ledger | None]) -> Ledger | None:
        with self._making:
            if self._ledger is None and self._place is not None:
                self._ledger = find(self._place)
            return self._ledger

    def _opened(self, place: Place) -> Ledger | None:
        if place.is_new:
            return None
        ledger = Ledger.open(place.where, anchor=place.anchor)
        try:
            studies = ledger.studies()
            if self.study in studies:
                self._refuse_another(ledger)
                return ledger
            if studies or place.is_server:
                raise foreign(self.study)
        except BaseException:
            ledger.close()
            raise
        ledger.close()
        return None

    def _created(self, place: Place) -> Ledger:
        """The ledger of the study; of several processes that are here at once, one creates it."""
        if place.is_new:
            place.refuse_second_budget()
            with suppress(InvalidParameter):  # another process was faster
                Ledger.open(place.where, anchor=place.anchor, new=True).close()
        ledger = Ledger.open(place.where, anchor=place.anchor)
        try:
            if not ledger.studies():
                with suppress(InvalidParameter):  # another process was faster
                    total, promise = self._promised or (self.total, None)
                    ledger.create(self.study, total, promise=promise)
            self._refuse_another(ledger)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def _refuse_another(self, ledger: Ledger) -> None:
        """Refuse a ledger that holds another total or promise."""
        if self._promised is not None:
            refuse_another_promise(self._promised, ledger.promised(self.study))

    def refuse_in_vain(self, epsilon: Fraction, analyst: str | None) -> None:
        """Refuse a spend that a new ledger would refuse, so that it creates none."""
        if self.known() is None:
            if analyst is not None:
                raise no_share(analyst, self.study)
            refuse_above(charge(epsilon), charge(self.total), f"study {self.study!r}")

    def spend(self, request_id: str, query: str, epsilon: Fraction, **terms: Any) -> Grant:
        """A spend of the study, as `Ledger.spend`; the first one creates the ledger."""
        self.refuse_in_vain(epsilon, terms.get("analyst"))
        promised = None if self._is_fixed.is_set() else self._promised
        grant = self.made().spend(
            request_id, query, epsilon, study=self.study, promised=promised, **terms
        )
        self._is_fixed.set()
        return grant

    @property
    def spent(self) -> Fraction:
        """The exact ε that was spent so far."""
        ledger = self.known()
        return Fraction(0) if ledger is None else ledger.spent(self.study)

    @property
    def remaining(self) -> Fraction:
        """The exact ε that is left of the total."""
        ledger = self.known()
        return self.total if ledger is None else ledger.remaining(self.study)

    @property
    def head(self) -> Entry:
        """The last entry of the study; before the first there is one with the number 0."""
        ledger = self.known()
        if ledger is not None:
            return ledger.recent(self.study, last=1)[-1]
        nothing: dict[str, Any] = dict.fromkeys(("time", "nonce", "before"), "")
        return Entry(
            study=self.study, number=0, kind="create", spent=0, total=charge(self.total), **nothing
        )

    def entry(self, request_id: str) -> Entry | None:
        """The entry of a request, charged or free; None if there is none."""
        ledger = self.known()
        return None if ledger is None else ledger.entry(request_id, study=self.study)

    @property
    def files(self) -> tuple[Path, ...]:
        """The paths of the ledger's files, which may not exist yet."""
        ledger = self.known()
        if ledger is not None or self._place is None:
            return () if ledger is None else ledger.files
        database, anchor = places(self._place.where, self._place.anchor)
        return (database, anchor) if isinstance(database, Path) else (anchor,)

    def over(self, ledger: Ledger) -> Budget:
        """The same budget, which uses this ledger."""
        budget = copy(self)
        budget._ledger = ledger
        return budget

    def close(self) -> None:
        """Close the ledger, if it is open."""
        if self._ledger is not None:
            self._ledger.close()


def total_of(policy: Policy) -> Fraction:
    """The total of a policy in the ledger's units."""
    return policy.epsilon // UNIT * UNIT  # rounds down: never more than was promised


def register(policy: Policy, place: Place, *, new: bool) -> bool:
    """Create a study with its total and promise, or correct them; whether they were corrected."""
    name, total = place.study or "", total_of(policy)
    with Ledger.open(place.where, anchor=place.anchor, new=new) as ledger:
        corrects = name in ledger.studies() and ledger.promised(name) != (total, policy.promise)
        (ledger.correct if corrects else ledger.create)(name, total, promise=policy.promise)
    return corrects
