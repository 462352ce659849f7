"""An audit: a lower bound on the privacy loss of any mechanism, from its outputs on two neighbours.

    ε ≥ ln( P(M(x) ∈ S) / P(M(x′) ∈ S) )     for every set S of outcomes, and with x and x′
                                             exchanged

The sets are `events` and their complements, fixed beforehand. For each set, the counts on both
sides give Clopper–Pearson bounds on its two probabilities. With m events, each of the four bounds
of an event fails with probability at most error_rate/4m, so the lower bound on ε exceeds the true
loss with probability at most `error_rate` (10⁻⁹ by default), whatever the mechanism. At ε = 1 a
million draws show about 0.98 of what an event reveals.

An audit cannot prove ε. It sees only its own events and its own pair of neighbours; a certificate
covers all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.formats import shown
from discreet.parameters import exact_chance, exact_count, exact_epsilon
from discreet.verify import binomial
from discreet.verify.events import LENGTH_LABELS, Events, batches, events_of, merge, takes_size

_PILOT = 20_000  # most outputs of the pilot, which is a tenth of the draws if that is less
_BATCH = 2**20


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit:
    """The lower bound that an audit measured, and the evidence for it."""

    epsilon: Fraction
    """The claimed ε."""
    bound: float
    """The measured lower bound: the true loss is at least this, except with probability
    `error_rate`.
    """
    draws: int
    """Outputs on each side, without the pilot."""
    events: int
    event: str
    """The event that showed the largest loss."""
    shares: tuple[float, float]
    """How often the event happened, on x and on its neighbor."""
    error_rate: float

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.bound > self.epsilon

    @property
    def verdict(self) -> str:
        """`violated` or `silent`."""
        return "violated" if self.violated else "silent"

    def to_dict(self) -> dict[str, Any]:
        """The audit in JSON's types."""
        bound = self.bound if math.isfinite(self.bound) else "infinite"
        changed = {"epsilon": str(self.epsilon), "bound": bound, "shares": list(self.shares)}
        return {**asdict(self), **changed, "verdict": self.verdict}

    def __repr__(self) -> str:
        first, second = (f"{share:.3%}" for share in self.shares)
        verdict = (
            "VIOLATED: the loss exceeds the claim"
            if self.violated
            else "silent: nothing beyond the claim was seen"
        )
        return (
            f"ε {shown(self.epsilon)} claimed · at least {self.bound:.4g} measured, error rate"
            f" {self.error_rate:g}\n{self.draws:,} draws on each side · {self.events} events · most"
            f" by: {self.event}\nwhich happened in {first} on x and in {second} on its"
            f" neighbor\n{verdict}"
        )


def audit(
    mechanism: Callable[..., Any],
    x: Any,
    x_neighbor: Any,
    *,
    epsilon: Any,
    draws: int = 100_000,
    batch: int | None = None,
    error_rate: Any = "1e-9",
) -> Audit:
    """Measure a lower bound on the privacy loss of a mechanism from its outputs on two neighbours.

    Parameters
    ----------
    mechanism : callable
        `mechanism(x)` returns one output; if it takes `size`, `mechanism(x, size=k)` returns an
        array of k outputs. It may be any function, of another library or over a network. An
        exception is an output.
    x, x_neighbor
        The two inputs.
    epsilon : number or text
        The claimed ε.
    draws, batch : int
        Outputs on each side, and the outputs of one call with `size`.
    error_rate : number or text
        The probability that the bound exceeds the true loss.

    Returns
    -------
    Audit
        `bound`, and whether the claim is `violated`.

    Examples
    --------
    >>> audit(lambda x: x, 0, 1, epsilon=1, draws=1_000).violated
    True

    """
    claimed, count = exact_epsilon(epsilon), exact_count("draws", draws, least=100)
    size = exact_count("batch", batch) if batch is not None else _BATCH
    doubt = float(exact_chance("error_rate", error_rate))
    pilot = min(_PILOT, max(50, count // 10))
    sides = (x, x_neighbor)
    events = events_of(*(merge(list(batches(mechanism, side, pilot, size))) for side in sides))
    if not takes_size(mechanism):
        size = min(size, 2**14)
    labels = [*events.labels, *LENGTH_LABELS]
    samples = [_count_events(mechanism, side, count, size, events) for side in sides]
    # an event that never happens on one side may show the loss by its complement
    labels += [f"not: {label}" for label in labels]
    counts = [np.concatenate([happened, tried - happened]) for happened, tried in samples]
    trials = [np.tile(tried, 2) for _, tried in samples]
    event_doubt = doubt / (4 * len(labels))
    bound, best, (above, below) = _best(counts, trials, event_doubt)
    low = binomial.lower(int(counts[above][best]), int(trials[above][best]), event_doubt)
    high = binomial.upper(int(counts[below][best]), int(trials[below][best]), event_doubt)
    return Audit(
        epsilon=claimed,
        bound=max(bound, math.log(low / high) if low > 0 else 0.0, 0.0),
        draws=count,
        events=len(labels),
        event=labels[best],
        shares=(
            int(counts[0][best]) / int(trials[0][best]),
            int(counts[1][best]) / int(trials[1][best]),
        ),
        error_rate=doubt,
    )


def _count_events(
    mechanism: Callable[..., Any], x: Any, draws: int, size: int, events: Events
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How often each event happened, and in how many trials; for lengths of texts, only the texts
    that were read.
    """
    counts, texts = np.zeros(len(events.labels) + len(LENGTH_LABELS), np.int64), 0
    for part in batches(mechanism, x, draws, size):
        counts += np.concatenate(
            [events.count(part), [part.lengths[label] for label in LENGTH_LABELS]]
        )
        texts += part.texts
    return counts, np.array([draws] * len(events.labels) + [max(1, texts)] * len(LENGTH_LABELS))


def _best(
    counts: Sequence[NDArray[np.int64]], trials: Sequence[NDArray[np.int64]], doubt: float
) -> tuple[float, int, tuple[int, int]]:
    """The event and the direction with the largest loss by Chernoff's bounds, which are cheap."""
    ends = [binomial.chernoff(counts[side], trials[side], doubt) for side in (0, 1)]
    with np.errstate(divide="ignore"):
        ratios = np.array([np.log(ends[above][0]) - np.log(ends[1 - above][1]) for above in (0, 1)])
    # of equal losses, the first event: kinds, which say most
    event, above = divmod(int(np.argmax(ratios.T)), 2)
    return float(ratios[above, event]), event, (above, 1 - above)
