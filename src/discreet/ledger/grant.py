"""What a spend gives: permission to answer one question once."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from discreet.ledger.anchor import Head
from discreet.ledger.chain import in_epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Permission to answer one question once: `spend` returns it and `record` takes it."""

    study: str
    request_id: str
    question: str
    epsilon: Fraction
    analyst: str | None
    repeated: bool
    """Whether the question was asked before; then nothing was charged now."""
    answer: bytes | None = field(repr=False)
    """The stored answer, which is to be shown as it is; None if there is none yet."""
    head: Head | None = field(default=None, repr=False)
    """The last entry of the study when this was given."""

    @property
    def remaining(self) -> Fraction | None:
        """What was left of the study's ε then; None for an analyst, who has a share of their own."""
        return None if self.head is None or self.analyst is not None else in_epsilon(self.head.total - self.head.spent)
