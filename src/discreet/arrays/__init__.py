"""Statistics of one column in memory, each with the most accurate estimator that discreet has.

    discreet.mean(ages, bounds=(0, 120), epsilon="0.1")

These parameters mean the same in all of them:

    x           one value for each unit: an array, a list, a Series, a column of Arrow
    bounds      (lower, upper): values beyond them are clamped. Choose them without looking at the
                data
    epsilon     the privacy parameter, as text, int, Fraction, Decimal or float; 0.1 is exactly 1/10
    neighbors   "change-one": one person's value changes; the number of people is public
                "add-remove": one person is added or removed; the number of people is private
    missing     the value of None, NaN and texts that are not numbers. Without it they are dropped,
                and the number of
                remaining values is private; a column of integers or truth values has no missing
                values
    method      "best", or "laplace" for Algorithm 1 of the textbook on the plain statistic
    **account   ledger= and study=: the call is charged before the data is read (`release.account`);
                with request_id=,
                or data_name= and data_version=, the same call is free when repeated; analyst= names
                who asks

Data never raises an error. Each call is ε-differentially private, and the ε of several calls add
up. docs/statistics.md explains the statistics.
"""

from discreet.arrays.distributions import bounds, cdf, histogram, value_counts
from discreet.arrays.moments import (
    count,
    mean,
    mean_and_std,
    moment,
    proportion,
    std,
    sum,
    summary,
    variance,
)
from discreet.arrays.ranks import max, median, min, quantile, quantiles

__all__ = [
    "bounds",
    "cdf",
    "count",
    "histogram",
    "max",
    "mean",
    "mean_and_std",
    "median",
    "min",
    "moment",
    "proportion",
    "quantile",
    "quantiles",
    "std",
    "sum",
    "summary",
    "value_counts",
    "variance",
]
