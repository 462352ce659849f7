"""How far one unit can move what is released: the only place that computes a Δ.

`textbook` has the global sensitivities of the statistics themselves (Algorithm 1), which are public as
`discreet.sensitivity`. `terms` has the scales of every design that is released.
"""

from discreet.calibrate.sensitivity.textbook import (
    count,
    histogram,
    max,
    mean,
    median,
    min,
    proportion,
    quantile,
    std,
    sum,
    variance,
)

__all__ = [
    "count",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "proportion",
    "quantile",
    "std",
    "sum",
    "variance",
]
