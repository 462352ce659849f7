"""Statistics of one column in memory, one call each: the functions of the texts, with the estimators that lose least.

    discreet.mean(ages, bounds=(0, 120), epsilon="0.1")

These parameters mean the same in all of them:

    x           one value for each unit: an array, a list, a Series, a column of Arrow
    bounds      (lower, upper): values beyond them are clamped. Choose them without a look at the data
    epsilon     the privacy parameter, as text, int, Fraction, Decimal or float; 0.1 is exactly 1/10
    neighbors   "change-one": a person's value may change, and how many people there are is public
                "add-remove": a person may be absent, and their number is private, too
    missing     what None, NaN and texts that are no number count as. Without it they are dropped, and how many values
                are left is private; a column of integers or truth values has none
    method      "best", or "laplace" for the textbook's form: Algorithm 1 on the plain statistic
    **account   ledger= and study=: the call is charged before the data is looked at (`release.account`); with
                request_id=, or data_name= and data_version=, it can be repeated, free; analyst= is who asks

Nothing in the data raises. Each call is ε-differentially private, and calls add up. docs/statistics.md explains them.
"""

from discreet.arrays.distributions import cdf, histogram, value_counts
from discreet.arrays.moments import count, mean, mean_and_std, moment, proportion, std, sum, summary, variance
from discreet.arrays.octaves import bounds
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
