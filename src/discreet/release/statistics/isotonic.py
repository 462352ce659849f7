"""The nearest numbers of the shape that the truth has: rising, or not negative with a known sum.

    isotonic   the rising sequence g with the least Σ (g − x)²: pool adjacent violators, in one pass
    project    the counts h ≥ 0 with Σ h = total and the least Σ (h − x)²: h = max(x − θ, 0)

Both are post-processing of released numbers. If |x − f| ≤ c everywhere for a truth f that rises, then |g − f| ≤ c
everywhere, so a simultaneous band for x is one for g: by the max–min formula g(v) is at most the largest mean of
x(s … v) over s ≤ v, which is at most f(v) + c, and at least the smallest mean of x(v … t), at least f(v) − c.

A projection of counts has a bias (empty cells gain, full cells lose): it is for display, never for adding up.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def isotonic(values: Floats) -> Floats:
    """The rising sequence nearest to `values`, along the last axis.

    >>> isotonic(np.array([1.0, 3.0, 2.0, 2.0, 5.0])).round(2).tolist()
    [1.0, 2.33, 2.33, 2.33, 5.0]
    """
    result = np.array(values, dtype=np.float64, ndmin=1)
    for row in result.reshape(-1, result.shape[-1]):
        if np.any(row[1:] < row[:-1]):
            row[:] = _pooled(row.tolist())
    return result


def project(counts: Floats, total: float) -> Floats:
    """The counts that are not negative, sum to `total` and lie nearest to `counts`; a negative total is taken as 0.

    >>> project(np.array([5.0, -1.0, 2.0]), 5).tolist()
    [4.0, 0.0, 1.0]
    """
    values = np.array(counts, dtype=np.float64)
    if total <= 0:
        return np.zeros_like(values)
    if values.min() >= 0 and math.fsum(values) == total:
        return values
    falling = np.sort(values)[::-1]
    # the surplus per cell if only the largest 1, 2, … cells stay above 0
    surplus = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    kept = max(1, int(np.count_nonzero(falling > surplus)))  # the largest cell stays, also where its surplus rounds
    nearest: Floats = np.maximum(values - surplus[kept - 1], 0.0)
    return nearest


def _pooled(values: list[float]) -> Floats:
    """Block means by a stack: a value joins the blocks before it for as long as they lie above it."""
    means: list[float] = []
    sums: list[float] = []
    sizes: list[int] = []
    for value in values:
        mean, total, size = value, value, 1
        while means and means[-1] > mean:
            means.pop()
            total += sums.pop()
            size += sizes.pop()
            mean = total / size
        means.append(mean)
        sums.append(total)
        sizes.append(size)
    return np.repeat(np.array(means), sizes)
