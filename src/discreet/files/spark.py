"""Noise on a Spark DataFrame, added on the executors, each with its own entropy.

    frame → parts by a hash of the keys → mapInArrow(exact noise), sorted by keys → private folder →
    record → the target

A DataFrame is evaluated each time it is used. Each use would get new noise, and the mean of many
uses is the truth, so the noisy frame is written once, and only the written frame is returned. A
task that is repeated, or runs twice at the same time, draws again and leaves its files until Spark
removes them. This happens in a folder that only the owner can read; at the end the files of the
successful attempts are moved to the target. (An object store has no such permissions: there the
rules of the bucket must deny access to names that begin with a dot.)

The file and position of a row depend on its keys alone, because the order of the frame may reveal
the data. Rows with equal keys are in the order of their noisy numbers; without keys all rows are in
this order, in one file. The executors need discreet installed. A worker is forked from Spark's
daemon, and `draw.entropy` keys every process and thread anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.engines.base import of_system
from discreet.engines.spark import explained, without_values
from discreet.errors import (
    DiscreetError,
    EngineFailed,
    InvalidParameter,
    QueryRefused,
    without_context,
)
from discreet.files.batches import chosen_columns, noisy_batches
from discreet.outside import read_json
from discreet.release.account import Asking, once, refuse_begun

if TYPE_CHECKING:
    from discreet.files.add_noise import Noise

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NESTED = ("array", "map", "struct", "variant")
_OWNER_ONLY = "700"


@without_context
def release_frame(frame: Any, target: str, noise: Noise, asking: Asking | None) -> Any:
    """The frame read back from the folder to which the executors wrote it, once."""
    refuse_frame(frame, target, noise, is_answer=asking is not None and asking.answered(target))
    folder = _Folder(frame.sparkSession, target)
    mine = json.dumps({**noise.record(), "file": target}).encode()
    is_written = False

    def work() -> bytes:
        nonlocal is_written
        folder.make_private()
        with without_values():
            _noisy(frame, noise).write.mode("error").parquet(folder.inner)
        is_written = True
        return mine

    try:
        with _told(frame, spent=asking is not None):
            recorded = work() if asking is None else once(asking, work, refuse_begun)[0]
            if is_written and recorded == mine:
                folder.publish()
    finally:
        folder.remove_private()
    if asking is None:
        return _reopen(frame, target)
    place = read_json(recorded)["file"]
    released = _reopen(frame, place)
    if released is None:
        raise QueryRefused(
            f"this was released to {place}; the folder is gone, and a release is made once"
        )
    return released


def refuse_frame(frame: Any, target: str, noise: Noise, *, is_answer: bool) -> None:
    """Refuse columns that cannot get noise, and an existing target, unless it is the answer."""
    kinds = dict(frame.dtypes)
    if not noise.columns:
        raise InvalidParameter("columns must name at least one column of integers")
    for name in chosen_columns(frame.columns, noise.columns, noise.keep):
        if kinds[name] not in _WHOLE:
            raise InvalidParameter(f"columns must be of integers, got {name!r} of {kinds[name]}")
    for name in noise.keep:
        if kinds[name].startswith(_NESTED):
            raise InvalidParameter(
                f"keys must be single values, and {name!r} is of {kinds[name]}; select its parts"
            )
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise InvalidParameter(
            "add_noise needs a session on Spark's driver: Spark Connect cannot move files"
        )
    if not is_answer and _Folder(frame.sparkSession, target).exists():
        raise InvalidParameter(
            f"the target must not exist, and {target.rsplit('/', 1)[-1]} does: name another folder"
        )


@contextmanager
def _told(frame: Any, *, spent: bool) -> Iterator[None]:
    """Within the block Spark writes; its failure says why, without a row."""
    try:
        yield
        return
    except DiscreetError:
        raise
    except (
        Exception
    ) as error:  # Spark's message may quote a row; raised below, so that no `__context__` holds it
        failed = explained(error, frame) or of_system(error)
    why = (
        "its log says why"
        if failed is None or isinstance(failed, DiscreetError)
        else failed.sentence
    )
    raise EngineFailed(
        f"Spark could not write the noisy frame: {why}",
        spent=spent,
        code="" if failed is None else failed.code,
    )


def _noisy(frame: Any, noise: Noise) -> Any:
    """The frame of kept and noisy columns, in parts that depend on the kept columns alone."""
    from pyspark.sql.functions import col
    from pyspark.sql.types import LongType, StructField, StructType

    # the metadata of a field could reveal data: it is not copied
    fields = [StructField(name, LongType(), nullable=False) for name in noise.columns]
    fields += [StructField(name, frame.schema[name].dataType, nullable=True) for name in noise.keep]
    by, numbers = ([col(_quoted(name)) for name in names] for names in (noise.keep, noise.columns))
    rows = frame.select(*by, *numbers)
    # with a given number of parts Spark does not merge them by size, which would reveal something
    # about the numbers
    parts = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    rows = rows.repartition(parts, *by) if noise.keep else rows.repartition(1)
    added = partial(noisy_batches, columns=noise.columns, keep=noise.keep, scale=noise.scale)
    return (
        rows.mapInArrow(added, StructType(fields))
        .select(*by, *numbers)
        .sortWithinPartitions(*by, *numbers)
    )


class _Folder:
    """A new folder, and the private folder beside it in which it is written, in the file system of
    its path.
    """

    def __init__(self, session: Any, target: str) -> None:
        from discreet.draw.entropy import random_digits

        self._java = session._jvm.org.apache.hadoop.fs
        self._settings = session._jsc.hadoopConfiguration()
        self._empty = session._sc._gateway.new_array(getattr(self._java, "Options$Rename"), 0)
        path = self._java.Path(target)
        self._system = path.getFileSystem(self._settings)
        self._target = self._system.makeQualified(path)
        name = f".{self._target.getName()}.{random_digits(1)}.part"
        self._private = self._java.Path(self._target.getParent(), name)
        self.inner = str(self._java.Path(self._private, "noisy"))

    def exists(self) -> bool:
        """Whether the target exists, even as a dangling link."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped, unused-ignore]

        uri = self._target.toUri()
        if uri.getScheme() == "file":  # Hadoop follows links here
            return os.path.lexists(uri.getPath())
        try:
            self._context().getFileLinkStatus(self._target)
        except Py4JJavaError as failure:
            if failure.java_exception.getClass().getSimpleName() != "FileNotFoundException":
                raise InvalidParameter(
                    "the target must be a new folder that Spark can write to"
                ) from None
            return False
        return True

    def make_private(self) -> None:
        owner = self._java.permission.FsPermission(_OWNER_ONLY)
        self._system.mkdirs(self._private, owner)
        self._system.setPermission(self._private, owner)  # no umask widens this

    def publish(self) -> None:
        """Move the written folder to the target, unless it exists."""
        self._context().rename(self._java.Path(self.inner), self._target, self._empty)

    def remove_private(self) -> None:
        with suppress(Exception):
            self._system.delete(self._private, True)

    def _context(self) -> Any:
        return self._java.FileContext.getFileContext(self._target.toUri(), self._settings)


def _reopen(frame: Any, target: str) -> Any:
    """The frame in the folder, or None if there is no such folder."""
    from pyspark.errors import AnalysisException

    try:
        # with two paths, Spark logs no stack trace on failure
        frame.sparkSession.read.parquet(target, target)
        return frame.sparkSession.read.parquet(target)
    except AnalysisException as failure:
        if failure.getCondition() == "PATH_NOT_FOUND":
            return None
        raise InvalidParameter("the target must be a new folder that Spark can write to") from None


def _quoted(name: str) -> str:
    """A name that Spark takes literally, with dots."""
    return "`" + name.replace("`", "``") + "`"
