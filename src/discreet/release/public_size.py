"""Whether the number of units is public: one function decides for questions, reports, profiles and
cards.

Under change-one a unit is replaced by another, so that the number of units stays. That holds for a
table as it is, a Parquet file and a frame. The rows of a view, a SELECT or a text file are chosen
by their content: an age of 17 or 18 decides whether a row is there. There the number is private,
unless the policy promises that it is public.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.ask.policy import Policy
from discreet.engines.base import Engine


@dataclass(frozen=True, slots=True)
class PublicSize:
    """Whether the number of units of a source is public."""

    value: bool
    reason: str
    unit: str
    may_be_promised: bool = False
    """Whether a line in the policy would make it public."""

    @property
    def sentence(self) -> str:
        """Whether the number of units is public, why, and what can be done about it."""
        units = "rows" if self.unit == "row" else f"units ({self.unit})"
        advice = '; if it is public, write size = "public"' if self.may_be_promised else ""
        return (
            f"The number of {units} is {'public' if self.value else 'private'}:"
            f" {self.reason}{advice}."
        )


def public_size(policy: Policy, engine: Engine) -> PublicSize:
    """Whether the number of units is public, and why; the engine says what its source is, the
    policy its promise.
    """
    if policy.neighbors != "change-one":
        return PublicSize(False, f"neighbors is {policy.neighbors}", policy.unit)
    if policy.size == "public":
        return PublicSize(True, "the policy promises it", policy.unit)
    if engine.chosen:
        return PublicSize(False, engine.chosen, policy.unit, may_be_promised=True)
    return PublicSize(True, "no value decides whether a row is there", policy.unit)
