"""A study of a frame in memory, declared in one call: one dictionary for each declaration.

Its ledger may be in memory, too: then it is in a temporary folder, which is removed with its study.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from os import PathLike
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Self, TypeAlias
from weakref import finalize

from discreet.ask.policy import InMemory, Policy
from discreet.ask.scope import check_schema
from discreet.errors import InvalidParameter
from discreet.ledger.ledger import Ledger
from discreet.parameters import Epsilon, Neighbors, Number, did_you_mean, quote

Key: TypeAlias = str | bool | Number | date
"""A declared value of a group column."""

MEMORY = "memory"
"""The word for a ledger in memory instead of a path."""

_EXAMPLES = {"bounds": '{"age": (0, 120)}', "keys": '{"county": ["Ash", "Elm"]}'}


class Framed:
    """The constructor of a study of a frame."""

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        epsilon: Epsilon,
        unit: str = "row",
        bounds: Mapping[str, Sequence[Number | date]] | None = None,
        keys: Mapping[str, Sequence[Key] | str] | None = None,
        bins: Mapping[str, Sequence[Number]] | None = None,
        missing: Mapping[str, Key] | None = None,
        other: Mapping[str, str] | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        neighbors: Neighbors = "change-one",
        ledger: str | PathLike[str] | Ledger = "memory",
        name: str = "study",
    ) -> Self:
        """A study of a copy of a pandas or polars frame or an Arrow table; in questions, the table
        is called `data`.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame, polars.LazyFrame or pyarrow.Table
            One or several rows for each person.
        epsilon : number or text
            The total privacy budget for this data, for ever.
        unit : text
            Whom we protect: "row", or the column that identifies the person; then `max_rows` of
            their rows count.
        bounds, keys, bins, missing, other : dict by column
            Declarations of columns, made without looking at the data; any other column can be used
            in conditions.
        max_rows, max_groups : int, optional
            The most rows of a person that count, and the most groups in which they count.
        neighbors : "change-one" or "add-remove"
            Whether the number of people is public.
        ledger : path, address, Ledger or "memory"
            Where spends are recorded. "memory" is for a notebook: it is not saved, so a new run is
            a new budget.
        name : text
            The name of the study in the ledger.

        """
        from discreet.engines.choose import engine_of

        engine = engine_of(InMemory(frame))
        declared = {
            "bounds": bounds,
            "keys": keys,
            "bins": bins,
            "missing": missing,
            "other": other,
        }
        policy = Policy(
            source=frame,
            epsilon=epsilon,
            unit=unit,
            columns=columns_of(engine.schema(), unit, declared),
            max_rows=max_rows,
            max_groups=max_groups,
            neighbors=neighbors,
        )
        check_schema(policy, engine.schema())
        study = cls(policy, ledger=ledger, name=name)  # type: ignore[call-arg]
        vars(study)["engine"] = engine  # it has read the rows already
        return study


def columns_of(
    names: Iterable[str], unit: str, declared: Mapping[str, Mapping[str, object] | None]
) -> dict[str, dict[str, Any]]:
    """The declarations of each column; a column without a declaration can be used in conditions.

    >>> columns_of(
    ...     ["patient", "age", "county"], "patient", {"bounds": {"age": (0, 120)}, "keys": None}
    ... )
    {'age': {'bounds': (0, 120)}, 'county': {}}
    """
    columns: dict[str, dict[str, Any]] = {name: {} for name in names if name != unit}
    for option, by_column in declared.items():
        if not isinstance(by_column or {}, Mapping):
            example = _EXAMPLES.get(option, '{"age": …}')
            raise InvalidParameter(
                f"{option} must be by column, as in {option}={example}, got {quote(by_column)}"
            )
        for name, value in (by_column or {}).items():
            if name == unit:
                raise InvalidParameter(
                    f"{option}: {quote(name)} is the unit, which cannot be asked about; leave"
                    " it out"
                )
            if name not in columns:
                hint = did_you_mean(str(name), columns) or f"it has {', '.join(list(columns)[:12])}"
                raise InvalidParameter(f"{option}: the frame has no column {quote(name)}; {hint}")
            columns[name][option] = value
    return columns


def throwaway(owner: object) -> tuple[Path, Callable[[], object]]:
    """The path of a ledger that is removed when its owner is freed or Python ends, and a function
    to remove it now.
    """
    folder = Path(mkdtemp(prefix="discreet-"))
    return folder / "study.ledger", finalize(owner, _remove, folder, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not in a forked child
        rmtree(folder, ignore_errors=True)
