"""The chain of entries: each hash covers its row, the ledger's id and the previous hash.

    h₀ = 0…0        hᵢ = SHA-256( ledger, row i without its hash, hᵢ₋₁ )

`replay` walks a study's entries and adds them up: the total, what was spent, each analyst's share.
A row that is missing, moved, changed or forged changes every hash after it. The hashes have no key:
whoever can write to the database can write a new chain, but not a chain that ends in the anchored
head.

A study begins with `create`; more of them may follow at once, as corrections of its total and its
promise. `create` and `restore` begin an era. A spend that has no answer when the next era begins is
void and never gets one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from fractions import Fraction
from hashlib import sha256
from operator import attrgetter
from typing import Any

from discreet.errors import DiscreetError
from discreet.ledger.refusals import changed, damaged
from discreet.outside import Unreadable, read_fraction
from discreet.parameters import UNIT, charge

START = "0" * 64  # the hash before the first entry


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
    """What the study has spent, this entry included."""
    total: int
    answer: bytes | None = field(default=None, repr=False)
    terms: str | None = None
    """Of an era, as JSON: the ledger's server, and the promise that the study was created with, or
    the anchored head that a restore has charged for."""
    asked: str | None = None
    """Of a spend or a repeat: the question as it was typed, for readers."""
    time: str
    nonce: str
    """128 random bits, so that no two entries are equal, not even the same spend twice."""
    before: str
    hash: str = ""


COLUMNS = tuple(part.name for part in fields(Entry))
_plain = attrgetter(*(name for name in COLUMNS if name not in ("answer", "hash")))
_encode = json.JSONEncoder(separators=(",", ":")).encode


def digest(ledger: str, row: Any, answer: bytes | None) -> str:
    """The hash of an entry of the ledger with this id; its answer enters as its SHA-256."""
    return sha256(
        _encode([ledger, None if answer is None else answer.hex(), *_plain(row)]).encode()
    ).hexdigest()


def sha256_of(answer: bytes | None) -> bytes | None:
    """The SHA-256 of an answer, the same as both databases compute."""
    return None if answer is None else sha256(answer).digest()


@contextmanager
def whole_rows() -> Iterator[None]:
    """Turn errors from rows that no ledger wrote, as in a damaged file, into `LedgerDamaged`."""
    try:
        yield
    except Unreadable:
        raise damaged() from None
    except DiscreetError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError):
        raise damaged() from None


@whole_rows()
def checked(ledger: str, row: Any) -> Any:
    """The row of an entry with its answer; `LedgerDamaged` if its hash is wrong."""
    if digest(ledger, row, sha256_of(row.answer)) != row.hash:
        raise changed(row.study, row.number)
    return row


def share_digest(study: str, name: str, allotted: int, spent: int) -> str:
    """The hash of an analyst's share, the same as PostgreSQL computes."""
    return sha256(f"{allotted} {spent} {study} {name}".encode()).hexdigest()


def question_of(query: str, data_version: str | None, request_id: str) -> str:
    """The hash of a query and its data version; without one, every request differs."""
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
    paid: set[int] | None = field(default_factory=set)
    """Questions that were charged; None if the walk did not begin at the first entry."""
    unanswered: set[int] = field(default_factory=set)


@whole_rows()
def replay(ledger: str, study: str, rows: Iterable[Any], balance: Balance) -> None:
    """Add the next rows to the balance; `LedgerDamaged` at the first that does not follow.

    A row has `answer_hash` instead of the answer.
    """
    for row in rows:
        balance.count += 1
        good = (row.study, row.number, row.before) == (study, balance.count, balance.head)
        good = good and digest(ledger, row, row.answer_hash) == row.hash and _adds_up(balance, row)
        if not good or (row.spent, row.total) != (balance.spent, balance.total):
            raise changed(study, balance.count)
        balance.head = row.hash


def _adds_up(balance: Balance, row: Any) -> bool:
    """Whether the entry may come next; if so, the balance includes it."""
    # with 10⁶ entries, a SHA-256 would take 10 times the memory
    key = hash((row.question, row.epsilon))
    match row.kind:
        case "create" if row.number == 1 or not (balance.spent or balance.allotted):  # a correction
            balance.total = row.amount
        case "allot" if row.analyst is not None:
            balance.allotted[row.analyst] = row.amount
            balance.spent_by.setdefault(row.analyst, 0)
        case "spend" if row.epsilon is not None and row.amount == charge(
            read_fraction(row.epsilon)
        ):
            balance.spent += row.amount
            if row.analyst is not None:
                balance.spent_by[row.analyst] = balance.spent_by.get(row.analyst, 0) + row.amount
            if balance.paid is not None:
                balance.paid.add(key)
                balance.unanswered.add(key)
        case "restore":
            balance.spent += row.amount
            balance.unanswered.clear()
        case "repeat":
            return balance.paid is None or key in balance.paid
        case "answer":
            answered = balance.paid is None or key in balance.unanswered
            balance.unanswered.discard(key)
            return answered
        case _:
            return False
    within = balance.paid is None or all(
        spent <= balance.allotted.get(name, 0) for name, spent in balance.spent_by.items()
    )
    return balance.spent <= balance.total and within


def in_epsilon(units: int) -> Fraction:
    """Units as an exact ε.

    >>> in_epsilon(100_000_000)
    Fraction(1, 10)
    """
    return units * UNIT
