"""Noise on a DataFrame of Spark, added where its rows are: on the executors, with entropy of their own.

    frame → parts by a hash of the keys → mapInArrow(exact noise), sorted by keys → private folder → record → the target

A DataFrame is evaluated each time it is used: each time it would get new noise, and the mean of many uses is the truth.
So the noisy frame is written, once, and only what was written is handed out. A task that is tried again, or twice at a
time, draws again, and leaves its files until Spark removes them: all of it happens in a folder that only the owner can
read, from which the files of the attempts that count are moved to the target at the end. (An object store has no such
permissions: there the bucket's own rules must keep readers away from names that begin with a dot.)

Which file a row is in, and where, depends on its keys alone: the order of the frame may be that of the secret. Rows
with equal keys are in the order of their noisy numbers; without keys all of them are, in one file. The executors need
discreet installed. A worker is forked from Spark's daemon, and `draw.entropy` keys every process and thread anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError, EngineFailed, InvalidParameter, QueryRefused
from discreet.files.batches import chosen_columns, noisy_batches
from discreet.files.recorded_file import Asking, refuse_begun

if TYPE_CHECKING:
    from discreet.files.add_noise import Noise

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NESTED = ("array", "map", "struct", "variant")
_OWNER_ONLY = "700"


def release_frame(frame: Any, target: str, noise: Noise, asking: Asking | None) -> Any:
    """The frame read back from the folder to which the executors have written it, once."""
    refuse_frame(frame, target, noise, is_answer=asking is not None and asking.answered(target))
    if asking is None:
        _write(frame, target, noise)
        return _reopen(frame, target)
    grant = asking.spend()
    recorded = grant.answer
    if recorded is None:
        refuse_begun(grant)
        mine = json.dumps({**noise.record(), "file": target}).encode()
        answers: list[bytes] = []

        def record() -> bool:
            answers.append(asking.ledger.record(grant, mine))
            return answers[0] == mine

        _write(frame, target, noise, record)
        [recorded] = answers
    folder = json.loads(recorded)["file"]
    again = _reopen(frame, folder)
    if again is None:
        raise QueryRefused(f"this was released to {folder}; the folder is gone, and a release is made once")
    return again


def refuse_frame(frame: Any, target: str, noise: Noise, *, is_answer: bool) -> None:
    """Refuse what cannot be noised, and a target that is there, unless it is the answer."""
    kinds = dict(frame.dtypes)
    if not noise.columns:
        raise InvalidParameter("columns must name at least one column of integers")
    for name in chosen_columns(frame.columns, noise.columns, noise.keep):
        if kinds[name] not in _WHOLE:
            raise InvalidParameter(f"columns must be of integers, got {name!r} of {kinds[name]}")
    for name in noise.keep:
        if kinds[name].startswith(_NESTED):
            raise InvalidParameter(f"keys must be single values, and {name!r} is of {kinds[name]}; select its parts")
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise InvalidParameter("add_noise needs a session on Spark's driver: Spark Connect cannot move files")
    if not is_answer and _Folder(frame.sparkSession, target).taken():
        raise InvalidParameter(f"the target must not exist, and {target.rsplit('/', 1)[-1]} does: name another")


def _write(frame: Any, target: str, noise: Noise, record: Callable[[], bool] = lambda: True) -> None:
    """Write a new folder of Parquet files; it gets its name if `record`, called before, says so."""
    folder = _Folder(frame.sparkSession, target)
    try:
        folder.make_private()
        _noisy(frame, noise).write.mode("error").parquet(folder.inner)
        if record():
            folder.publish()
        return
    except DiscreetError:
        raise
    except Exception:  # noqa: S110 - Spark's words may quote a row: told below, where no `__context__` keeps them
        pass
    finally:
        folder.remove_private()
    raise EngineFailed("Spark could not write the noisy frame; what was spent stays spent")


def _noisy(frame: Any, noise: Noise) -> Any:
    """The frame of kept and noisy columns, in parts that depend on the kept ones alone."""
    from pyspark.sql.functions import col
    from pyspark.sql.types import LongType, StructField, StructType

    # a field's own notes could tell of the data: they are not carried over
    fields = [StructField(name, LongType(), nullable=False) for name in noise.columns]
    fields += [StructField(name, frame.schema[name].dataType, nullable=True) for name in noise.keep]
    by, numbers = ([col(_quoted(name)) for name in names] for names in (noise.keep, noise.columns))
    rows = frame.select(*by, *numbers)
    # with a number of parts that is given, Spark joins none of them by their sizes, which would tell of the numbers
    parts = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    rows = rows.repartition(parts, *by) if noise.keep else rows.repartition(1)
    added = partial(noisy_batches, columns=noise.columns, keep=noise.keep, scale=noise.scale)
    return rows.mapInArrow(added, StructType(fields)).select(*by, *numbers).sortWithinPartitions(*by, *numbers)


class _Folder:
    """A new folder, and beside it the private one in which it is made; both in the file system of its path."""

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

    def taken(self) -> bool:
        """Whether something has the name of the target, even a dangling link."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped, unused-ignore]

        uri = self._target.toUri()
        if uri.getScheme() == "file":  # where Hadoop looks through links
            return os.path.lexists(uri.getPath())
        try:
            self._context().getFileLinkStatus(self._target)
        except Py4JJavaError as failure:
            if failure.java_exception.getClass().getSimpleName() != "FileNotFoundException":
                raise InvalidParameter("the target must be a new folder that Spark can write to") from None
            return False
        return True

    def make_private(self) -> None:
        owner = self._java.permission.FsPermission(_OWNER_ONLY)
        self._system.mkdirs(self._private, owner)
        self._system.setPermission(self._private, owner)  # which no umask widens

    def publish(self) -> None:
        """Give what was written its name, unless something has it."""
        self._context().rename(self._java.Path(self.inner), self._target, self._empty)

    def remove_private(self) -> None:
        with suppress(Exception):
            self._system.delete(self._private, True)

    def _context(self) -> Any:
        return self._java.FileContext.getFileContext(self._target.toUri(), self._settings)


def _reopen(frame: Any, target: str) -> Any:
    """The frame of what is in the folder, or None if there is none."""
    from pyspark.errors import AnalysisException

    try:
        frame.sparkSession.read.parquet(target, target)  # of two paths, Spark logs no stack trace if there is none
        return frame.sparkSession.read.parquet(target)
    except AnalysisException as failure:
        if failure.getCondition() == "PATH_NOT_FOUND":
            return None
        raise InvalidParameter("the target must be a new folder that Spark can write to") from None


def _quoted(name: str) -> str:
    """A name that Spark takes as it is, dots and all."""
    return "`" + name.replace("`", "``") + "`"
