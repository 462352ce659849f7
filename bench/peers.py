"""OpenDP's own measurements of the same statistics, at the smallest noise that it grants for an ε."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

CANDIDATES = 1024
"""OpenDP's quantile chooses among listed values; of 256, 1,024, 8,192 and 32,768 these served it
best.
"""

Answer = Callable[[], Any]


def granted(spent: float, epsilon: float) -> None:
    """OpenDP's own bound for the measurement is the ε that we gave, to a millionth."""
    if not epsilon * (1 - 1e-6) <= spent <= epsilon:
        raise ValueError(f"OpenDP's noise is not that of ε = {epsilon}, but of {spent}")


class OpenDP:
    """Answers about values in [0, 1]; each is the noise alone, drawn anew, on an aggregate computed
    once.
    """

    def __init__(
        self, values: np.ndarray, truths: np.ndarray, *, epsilon: float, public_size: bool
    ) -> None:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        self.dp, self.epsilon, self.public_size = dp, epsilon, public_size
        self.values, self.truths = values.tolist(), truths.astype(int).tolist()
        # where the size is declared, one changed record is two in OpenDP's distance: one out, one
        # in
        size, self.moved = (values.size, 2) if public_size else (None, 1)
        near = dp.symmetric_distance()
        self.reals = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=size), near
        self.bits = dp.vector_domain(dp.atom_domain(bounds=(0, 1)), size=size), near
        self.cells = dp.vector_domain(dp.atom_domain(T=int), size=size), near

    def noisy(self, exact: Any, values: list[Any], share: float = 1) -> Answer:
        """An aggregate with Laplace noise, for a share of ε."""
        epsilon = self.epsilon * share
        # a little more, for OpenDP's own rounding
        scale = float(exact.map(self.moved)) / epsilon * (1 + 1e-9)
        noise = self.dp.m.make_laplace(exact.output_domain, exact.output_metric, scale=scale)
        granted((exact >> noise).map(self.moved), epsilon)
        answer = exact(values)
        return lambda: noise(answer)

    def count(self) -> Answer:
        return self.noisy(self.dp.t.make_sum(*self.bits), self.truths)

    def sum(self) -> Answer:
        return self.noisy(self.dp.t.make_sum(*self.reals), self.values)

    def mean(self) -> Answer:
        if self.public_size:
            return self.noisy(self.dp.t.make_mean(*self.reals), self.values)
        return self.ratio(self.reals, self.values)

    def proportion(self) -> Answer:
        if not self.public_size:
            return self.ratio(self.bits, self.truths)
        count = self.count()
        return lambda: count() / len(self.truths)

    def ratio(self, space: Any, values: list[Any]) -> Answer:
        """Where the size is private: half of ε for the sum, half for the count."""
        above = self.noisy(self.dp.t.make_sum(*space), values, 0.5)
        below = self.noisy(self.dp.t.make_count(*space), values, 0.5)
        return lambda: above() / max(below(), 1)

    def variance(self) -> Answer | None:
        if not self.public_size:
            return None
        return self.noisy(self.dp.t.make_variance(*self.reals, ddof=0), self.values)

    def std(self) -> Answer | None:
        variance = self.variance()
        return None if variance is None else lambda: math.sqrt(max(variance(), 0.0))

    def quantile(self, q: float, candidates: int = CANDIDATES) -> Answer:
        points = [(index + 0.5) / candidates for index in range(candidates)]
        scale = (2 if self.public_size else 2 * max(q, 1 - q)) / self.epsilon * (1 + 1e-9)
        choice = self.dp.m.make_private_quantile(
            *self.reals, self.dp.max_divergence(), candidates=points, alpha=q, scale=scale
        )
        granted(choice.map(self.moved), self.epsilon)
        return lambda: choice(self.values)

    def drawn_quantile(self, q: float, candidates: int, farthest: float) -> Answer:
        """The same on scores that were computed once, of the candidates that have a chance of
        e^−farthest.
        """
        points, sorted_ = (np.arange(candidates) + 0.5) / candidates, np.sort(self.values)
        below, above = (np.searchsorted(sorted_, points, side) for side in ("left", "right"))
        gaps = np.abs((1 - q) * below - q * (sorted_.size - above)) * self.epsilon / 2
        near = points[gaps <= gaps.min() + farthest]
        scores = self.dp.t.make_quantile_score_candidates(
            *self.reals, candidates=near.tolist(), alpha=q
        )
        scale = 2.0 * float(scores.map(self.moved)) / self.epsilon * (1 + 1e-9)
        choice = self.dp.m.make_noisy_max(
            scores.output_domain,
            scores.output_metric,
            self.dp.max_divergence(),
            scale=scale,
            negate=True,
        )
        granted((scores >> choice).map(self.moved), self.epsilon)
        known = scores(self.values)
        return lambda: float(near[choice(known)])

    def histogram(self, bins: int) -> Answer:
        found = self.dp.t.make_count_by_categories(
            *self.cells, categories=list(range(bins)), null_category=False
        )
        return self.noisy(found, [min(int(value * bins), bins - 1) for value in self.values])
