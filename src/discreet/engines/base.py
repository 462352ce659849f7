"""A secret has a type: what an engine computed from rows, and what only `release.mechanism` may open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")
Other = TypeVar("Other")


class Exact(Generic[Value]):
    """An exact answer. It prints as dots, and knows no equality, order, hash or copy that could tell it."""

    __slots__ = ("__secret",)

    def __init__(self, secret: Value) -> None:
        self.__secret = secret

    def map(self, function: Callable[[Value], Other]) -> Exact[Other]:
        """A function of the secret, which is a secret."""
        return Exact(function(self.__secret))

    def reveal(self) -> Value:
        """The exact answer; called by `release.mechanism` alone, which adds the noise."""
        return self.__secret

    def __repr__(self) -> str:
        return "Exact(…)"

    def __eq__(self, _other: object) -> bool:
        raise TypeError("an exact answer cannot be compared; release it first")

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> str:
        raise TypeError("an exact answer cannot be copied or stored; release it first")
