"""What failed after it was paid for, and what may be asked since: a file beside the ledger's
anchor.

    a question fails after its spend    the failure is written down
    the next question                   first a probe, which reads no row; if it fails, nothing is
                                        spent
    a question is answered              the failure is removed
    a question runs out of time         it is refused by its text, until it is asked with a larger
                                        time limit

So a source or a disk that fails is charged once. Where the probe passes and questions fail all the
same, nothing is asked for a minute after the second failure, and for twice as long after each
further one, up to 15 minutes.

The file has hashes of questions, times and kinds of failures, and nothing that a row or a database
has said. It is no part of the ledger's chain: without it, the next question is asked, and charged,
as if nothing had failed. Where the disk has no room for it, it is empty, and then everything is
probed.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, get_args

from discreet.errors import EngineFailed, OutOfTime, SourceFailing, Stopped
from discreet.ledger.anchor import private_file, temporary_name
from discreet.ledger.refusals import MOST_BYTES
from discreet.outside import read_json

if TYPE_CHECKING:
    from discreet.release.study import Study

_ENDING = ".failures"
_NO_MEMORY = ("out of memory", "SQLSTATE 53200")
# seconds in which nothing is asked: after the second failure, and after many
_FIRST, _LONGEST = 60, 900
_MOST = 10_000  # questions that ran out of time; the oldest are forgotten

Part = Literal["source", "ledger", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What failed since the last answer of a study, and the questions that ran out of time."""

    part: Part | None = None
    failures: int = 0
    """How many questions failed, each begun after the failure before."""
    at: float = 0.0
    """When the last of them failed, in seconds since 1970."""
    room: int = 0
    """The bytes of the last answer, if it could not be stored."""
    late: dict[str, float] = field(default_factory=dict)
    """By the hash of its text, the time limit within which a question had no answer."""


_UNKNOWN = Standing(part="unknown", failures=1)  # of an empty file: its disk was full


class Attempt:
    """A question that is being answered; `storing` says from when on it is the ledger that may
    fail.
    """

    def __init__(self) -> None:
        self.began, self.room = time.time(), 0
        self.part: Part = "source"

    def storing(self, content: bytes) -> bytes:
        """The content, which the ledger stores next."""
        self.part, self.room = "ledger", len(content)
        return content

    def failed(self, now: Standing) -> Standing:
        """The standing after this failure; of questions that failed together, one counts."""
        is_new = self.began >= now.at
        failures = now.failures + is_new
        return replace(now, part=self.part, failures=failures, at=time.time(), room=self.room)


class Standings:
    """The standing of a study, in a file that all its processes on this machine share."""

    def __init__(self, study: Study) -> None:
        self._study = study
        anchor = study.budget.files[-1]
        self._file = anchor.with_name(anchor.name.removesuffix(".anchor") + _ENDING)

    def refuse(self, text: str, is_paid: Callable[[], bool] = lambda: False) -> None:
        """Refuse a question if what has failed still fails, or if it ran out of time; nothing is
        spent.

        What was paid for need not wait: it is free.
        """
        standing = self._read()
        seconds = standing.late.get(_hash(text), 0.0)
        if self._study.policy.seconds <= seconds:
            raise SourceFailing(
                f"this question had no answer within {seconds:g} s, and is refused until it is"
                " asked with a larger time_limit"
            )
        if standing.part is None:
            return
        wait = (
            standing.at + min(_LONGEST, _FIRST * 2 ** min(standing.failures - 2, 10)) - time.time()
        )
        if standing.failures > 1 and 0 < wait <= _LONGEST and not is_paid():
            raise SourceFailing(
                f"the last {standing.failures} questions of this study failed after they were paid"
                f" for: correct the source, and ask again in {round(wait) + 1:,} s"
            )
        self._probe(standing)

    def _probe(self, standing: Standing) -> None:
        refused = None
        try:
            if standing.part != "ledger":
                self._study.engine.check()
            if standing.part != "source":
                self._study.ledger.probe(standing.room)
        except EngineFailed as error:
            refused = SourceFailing(error.sentence, code=error.code)
        if refused is not None:  # raised here, so that no `__context__` holds another message
            raise refused

    @contextmanager
    def attempt(self, text: str) -> Iterator[Attempt]:
        """Within the block a question is answered that was paid for; a failure is written down."""
        attempt, question = Attempt(), _hash(text)
        try:
            yield attempt
        except OutOfTime:
            self._change(lambda now: _later(now, question, self._study.policy.seconds))
            raise
        except Exception as error:
            is_its_own = (
                isinstance(error, Stopped | MemoryError) or getattr(error, "code", "") in _NO_MEMORY
            )
            # stopped by a person, or too large a question: the next one may be answered
            if not is_its_own:
                self._change(attempt.failed)
            raise
        now = self._read()
        if now.part is not None or question in now.late:
            self._change(lambda now: _answered(now, question))

    def _read(self) -> Standing:
        """What the file says; a file that cannot be read says that something has failed."""
        try:
            return _checked(
                Standing(**read_json(self._file.read_bytes()).get(self._study.name, {}))
            )
        except FileNotFoundError:
            return Standing()
        except (OSError, ValueError, TypeError, AttributeError):
            return _UNKNOWN

    def _change(self, change: Callable[[Standing], Standing]) -> None:
        """Write another standing of this study; what fails here hides no other failure."""
        with suppress(OSError), self._alone():
            studies: Any = {}
            with suppress(OSError, ValueError):
                studies = read_json(self._file.read_bytes())
            if not isinstance(studies, dict):
                studies = {}
            studies[self._study.name] = asdict(change(self._read()))
            if studies[self._study.name] == asdict(Standing()):
                del studies[self._study.name]
            self._write(json.dumps(studies).encode() if studies else None)

    def _write(self, content: bytes | None) -> None:
        if content is None:
            self._file.unlink(missing_ok=True)
            return
        new = temporary_name(self._file)
        try:
            with os.fdopen(private_file(new), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self._file)
        except OSError:
            with suppress(OSError):
                new.unlink()
            if not self._file.exists():  # a full disk may still have room for a name
                os.close(private_file(self._file))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the folder against other processes that change the file."""
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def _checked(standing: Standing) -> Standing:
    """The standing, if it is one that is ever written; otherwise `ValueError`."""
    numbers = [standing.at, *standing.late.values()]
    counts = [standing.failures, standing.room]
    usual = (
        standing.part in (None, *get_args(Part))
        and all(type(count) is int and count >= 0 for count in counts)
        and standing.room <= MOST_BYTES
        and all(type(number) in (int, float) for number in numbers)
    )
    if not usual:
        raise ValueError
    return standing


def _later(now: Standing, question: str, seconds: float) -> Standing:
    others = {other: limit for other, limit in now.late.items() if other != question}
    return replace(now, late=dict([*others.items(), (question, seconds)][-_MOST:]))


def _answered(now: Standing, question: str) -> Standing:
    return Standing(late={other: limit for other, limit in now.late.items() if other != question})


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
