"""discreet publishes statistics about people without revealing any one of them.

The Laplace mechanism of differential privacy, f(x) + Lap(Δ/ε), done exactly: integers from the row to
the release, an exact rational ε, exact discrete Laplace noise.

    >>> import discreet
    >>> noisy = discreet.laplace_mechanism(1234, sensitivity=1, epsilon="0.1")
    >>> isinstance(noisy, int)
    True

Names are imported when they are first used, so that `import discreet` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.draw.laplace import DiscreteLaplace, Laplace
    from discreet.errors import (
        BudgetExceeded,
        DiscreetError,
        EngineFailed,
        InvalidParameter,
        LedgerDamaged,
        QueryRefused,
    )
    from discreet.release.mechanism import laplace_mechanism

__all__ = [
    "BudgetExceeded",
    "DiscreetError",
    "DiscreteLaplace",
    "EngineFailed",
    "InvalidParameter",
    "Laplace",
    "LedgerDamaged",
    "QueryRefused",
    "laplace_mechanism",
]

_HOMES = {
    "BudgetExceeded": "errors",
    "DiscreetError": "errors",
    "DiscreteLaplace": "draw.laplace",
    "EngineFailed": "errors",
    "InvalidParameter": "errors",
    "Laplace": "draw.laplace",
    "LedgerDamaged": "errors",
    "QueryRefused": "errors",
    "laplace_mechanism": "release.mechanism",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home on first use (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("discreet")
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    value = getattr(import_module(f"discreet.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
