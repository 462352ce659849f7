"""Noise on a DataFrame of Spark, added where its rows are: on the executors, with entropy of their own.

    frame → mapInArrow(exact noise) → Parquet → the frame that is read back

A DataFrame is a recipe: each time it is looked at it would be noised anew, and the mean of many looks is the truth. So
the noisy frame is written, once, and only what was written is handed out. A task that is tried again, or twice at a
time, draws again, but Spark commits the files of one attempt alone and removes the others unseen.

The executors need discreet installed. A worker is forked from Spark's daemon, and `draw.entropy` keys every process and
thread anew. Rows are sorted by their keys within each file, so that their order tells of nothing but keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError, EngineFailed, InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

_WHOLE = ("tinyint", "smallint", "int", "bigint")


def checked(frame: Any, target: str, columns: Sequence[str], keys: Sequence[str], *, known: bool) -> None:
    """Refuse what cannot be noised, and a target that is there, unless it is `known` to be the answer."""
    kinds = dict(frame.dtypes)
    wanted = [*keys, *columns]
    if not columns or len(set(wanted)) < len(wanted):
        raise InvalidParameter("columns must name at least one column, and no column may be named twice")
    for name in wanted:
        if frame.columns.count(name) != 1:
            raise InvalidParameter(f"columns and keys must be among {', '.join(frame.columns)}, got {name!r}")
    for name in columns:
        if kinds[name] not in _WHOLE:
            raise InvalidParameter(f"columns must be of integers, got {name!r} of {kinds[name]}")
    if not known and reopened(frame, target) is not None:
        raise InvalidParameter(f"the target must not exist, and {target.rsplit('/', 1)[-1]} does: name another")


def noised(frame: Any, target: str, columns: Sequence[str], keys: Sequence[str], scale: Fraction) -> Any:
    """The frame of keys and noisy columns, read back from the new folder of Parquet files."""
    from pyspark.sql.functions import col
    from pyspark.sql.types import LongType, StructField, StructType

    fields = [frame.schema[name] for name in keys] + [StructField(name, LongType(), nullable=False) for name in columns]
    rows = frame.select(*(col(_quoted(name)) for name in [*keys, *columns]))
    noise = partial(noisy_rows, columns=tuple(columns), keys=tuple(keys), scale=scale)
    noisy = rows.mapInArrow(noise, StructType(fields))
    if keys:
        noisy = noisy.sortWithinPartitions(*(col(_quoted(name)) for name in keys))
    try:
        noisy.write.mode("error").parquet(target)
        return frame.sparkSession.read.parquet(target)
    except DiscreetError:
        raise
    except Exception:  # noqa: S110 - Spark's words may quote a row: told below, where no `__context__` keeps them
        pass
    raise EngineFailed("Spark could not write the noisy frame; what was spent stays spent")


def reopened(frame: Any, target: str) -> Any:
    """The frame of what is in the folder, or None if there is none."""
    from pyspark.errors import AnalysisException

    try:
        frame.sparkSession.read.parquet(target, target)  # of two paths, Spark logs no stack trace if there is none
        return frame.sparkSession.read.parquet(target)
    except AnalysisException as failure:
        if failure.getCondition() == "PATH_NOT_FOUND":
            return None
        raise InvalidParameter("the target must be a new folder that Spark can write to") from None


def noisy_rows(
    batches: Iterable[pa.RecordBatch], *, columns: Sequence[str], keys: Sequence[str], scale: Fraction
) -> Iterator[pa.RecordBatch]:
    """The batches of one partition with noise: this is what runs on an executor."""
    from discreet.engines.batches import noisy_batch, noisy_schema

    for batch in batches:
        yield noisy_batch(batch, noisy_schema(batch.schema, columns, keys), columns, scale)


def _quoted(name: str) -> str:
    """A name that Spark takes as it is, dots and all."""
    return "`" + name.replace("`", "``") + "`"
