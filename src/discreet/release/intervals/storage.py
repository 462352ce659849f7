"""What all releases share as values: they are compared, hashed and written by their content."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Self


class Stored:
    """A release, or several; `document` writes it."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The numbers, the ends of their 95 % intervals (`low`, `high`), and what they cost."""
        from discreet.release.intervals.document import as_dict

        return as_dict(self)

    def to_json(self) -> str:
        """The whole release as JSON: the content of `to_dict`, and the inputs of the intervals at any confidence."""
        from discreet.release.intervals.document import as_json

        return as_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The release in the JSON that `to_json` wrote."""
        from discreet.release.intervals.document import of_json

        return of_json(text, cls)

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the JSON to a new .json file, which `from_json` reads; `force` overwrites an existing file."""
        from discreet.release.intervals.document import save

        return save(self, path, force=force)

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Stored) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_json())
