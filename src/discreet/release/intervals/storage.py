"""What releases have in common with each other as values: they are equal, hashed and written by what they hold."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Self


class Stored:
    """A release, or several; `document` writes them."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """What a reader needs: the numbers, the ends of their 95 % intervals (`low`, `high`), and what they cost."""
        from discreet.release.intervals.document import as_dict

        return as_dict(self)

    def to_json(self) -> str:
        """All of it as JSON: what `to_dict` has, and what the intervals at any confidence follow from."""
        from discreet.release.intervals.document import as_json

        return as_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote."""
        from discreet.release.intervals.document import of_json

        return of_json(text, cls)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write it as a new .json, which `from_json` reads; `force` writes over a file."""
        from discreet.release.intervals.document import save

        return save(self, path, force=force)

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Stored) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_json())
