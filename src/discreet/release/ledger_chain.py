"""The chain of entries: each hash covers its row, the ledger's id and the hash before.

    h₀ = 0…0        hᵢ = SHA-256( ledger, row i without its hash, hᵢ₋₁ )

`replay` walks a study's entries from the first and finds what they add up to: the total, what was spent, each
analyst's share. A row that is missing, moved, changed or made up changes every hash after it. There is no key in it:
who can write the database can write a new chain, but not one that ends in the anchored head.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from hashlib import sha256
from operator import attrgetter
from typing import Any

from discreet.calibrate.epsilon import UNIT, charge
from discreet.errors import LedgerDamaged

START = "0" * 64
"""The hash before the first entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the ledger; amounts are in units of 10⁻⁹ ε."""

    study: str
    number: int
    kind: str
    request_id: str | None = None
    analyst: str | None = None
    query: str | None = None
    data_version: str | None = None
    question: str | None = None
    epsilon: str | None = None
    amount: int = 0
    spent: int
    """By the study, after this entry."""
    total: int
    answer: bytes | None = field(default=None, repr=False)
    time: str
    before: str
    hash: str = ""


COLUMNS = tuple(part.name for part in fields(Entry))
_plain = attrgetter(*(name for name in COLUMNS if name not in ("answer", "hash")))
_encode = json.JSONEncoder(separators=(",", ":")).encode


def digest(ledger: str, entry: Entry) -> str:
    """The hash of an entry of the ledger with this id; a long answer counts by its own hash."""
    answer = None if entry.answer is None else sha256(entry.answer).hexdigest()
    return sha256(_encode([ledger, answer, *_plain(entry)]).encode()).hexdigest()


def question_of(query: str, data_version: str | None, request_id: str) -> str:
    """What is asked, of which data; data of unknown version make every request a question of its own."""
    of_whom = {"version": data_version} if data_version is not None else {"request": request_id}
    return sha256(_encode([query, of_whom]).encode()).hexdigest()


@dataclass(slots=True)
class Balance:
    """What a study's entries add up to, in units of 10⁻⁹ ε."""

    total: int = 0
    spent: int = 0
    count: int = 0
    head: str = START
    allotted: dict[str, int] = field(default_factory=dict)
    spent_by: dict[str, int] = field(default_factory=dict)


def replay(ledger: str, study: str, entries: Iterable[Entry]) -> Balance:
    """The balance after all entries, in order; `LedgerDamaged` at the first that does not follow from those before."""
    balance = Balance()
    asked: set[Any] = set()
    for entry in entries:
        balance.count += 1
        good = (entry.study, entry.number, entry.before) == (study, balance.count, balance.head)
        good = good and digest(ledger, entry) == entry.hash and _adds_up(balance, entry, asked)
        if not good or (entry.spent, entry.total) != (balance.spent, balance.total):
            raise LedgerDamaged(
                f"entry {balance.count} of study {study!r} was changed, removed or made up: "
                "put back a copy of the ledger that is whole"
            )
        balance.head = entry.hash
    return balance


def _adds_up(balance: Balance, entry: Entry, asked: set[Any]) -> bool:
    """Whether the entry may come next; the balance then includes it."""
    key = (entry.question, entry.epsilon)
    match entry.kind:
        case "create" if entry.number == 1:
            balance.total = entry.amount
        case "allot" if entry.analyst is not None:
            balance.allotted[entry.analyst] = entry.amount
            balance.spent_by.setdefault(entry.analyst, 0)
        case "spend" if entry.epsilon is not None and entry.amount == charge(Fraction(entry.epsilon)):
            balance.spent += entry.amount
            if entry.analyst is not None:
                balance.spent_by[entry.analyst] = balance.spent_by.get(entry.analyst, 0) + entry.amount
            asked.add(key)
        case "restore":
            balance.spent += entry.amount
        case "repeat" | "answer":
            return key in asked
        case _:
            return False
    within = all(spent <= balance.allotted.get(name, 0) for name, spent in balance.spent_by.items())
    return balance.spent <= balance.total and within


def in_epsilon(units: int) -> Fraction:
    """Units as an exact ε.

    >>> in_epsilon(100_000_000)
    Fraction(1, 10)
    """
    return units * UNIT
