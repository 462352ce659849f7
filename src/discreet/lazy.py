"""Public names that are imported when they are first used (PEP 562), so that importing a package costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module


def found(package: str, name: str, homes: Mapping[str, str], modules: Mapping[str, str]) -> object:
    """What a package means by a name: a module, or what the home that lists the name has under it.

    >>> found("discreet", "Laplace", {"draw.laplace": "DiscreteLaplace Laplace"}, {}).__name__
    'Laplace'
    """
    if name in modules:
        return import_module(f"{package}.{modules[name]}")
    home = next((home for home, names in homes.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"{package}.{home}"), name)
