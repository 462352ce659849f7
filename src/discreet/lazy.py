"""Public names that are imported on first use (PEP 562), so that importing the package takes no time."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module


def resolve(package: str, name: str, homes: Mapping[str, str], modules: Mapping[str, str]) -> object:
    """The module or object that a package exports under a name.

    >>> resolve("discreet", "Laplace", {"draw.laplace": "DiscreteLaplace Laplace"}, {}).__name__
    'Laplace'
    """
    if name in modules:
        return import_module(f"{package}.{modules[name]}")
    home = next((home for home, names in homes.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"{package}.{home}"), name)
