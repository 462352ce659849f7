"""Metrics of a running server, in the text format of Prometheus (`_HELP` lists them).

Names of people, questions and keys are never labels. The duration of a statement is not measured,
since it depends on the data. A spend comes before the first row is read, and the length of an
answer is public before the release.
"""

from __future__ import annotations

import stat
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from discreet.errors import InvalidParameter
from discreet.ledger.chain import Entry
from discreet.records import software

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Upper ends of the histogram in seconds: a spend waits for the disk (milliseconds), or for its
# turn.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

_HELP = {
    "discreet_requests_total": ("counter", "Responses by route and status."),
    "discreet_closed_total": ("counter", "Connections that the server closed, by reason."),
    "discreet_requests_in_progress": ("gauge", "Requests that are processed or sent."),
    "discreet_ledger_seconds": ("histogram", "Duration of a spend and of the record of an answer."),
    "discreet_epsilon_budget": ("gauge", "Total epsilon of a study."),
    "discreet_epsilon_spent": ("gauge", "Epsilon that a study has spent."),
    "discreet_epsilon_left": ("gauge", "Epsilon that a study has left."),
    "discreet_ledger_entries": ("gauge", "Entries of a study in its ledger."),
    "discreet_ready": ("gauge", "Whether a part can be used: source, ledger, tokens or disk."),
    "discreet_info": ("gauge", "Version of the software."),
    "process_resident_memory_bytes": ("gauge", "Memory of the server's process."),
}

Labels = tuple[tuple[str, str], ...]


_NOTHING: Mapping[tuple[str, str], bool] = MappingProxyType({})


class Metrics:
    """Counts of this process; several threads may add to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, Labels]] = Counter()
        self._times: dict[str, list[float]] = {}
        self._sums: Counter[str] = Counter()

    def add(self, name: str, count: int = 1, **labels: str) -> None:
        with self._lock:
            self._counts[name, tuple(labels.items())] += count

    @contextmanager
    def timing(self, operation: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - began
            with self._lock:
                buckets = self._times.setdefault(operation, [0] * (len(BUCKETS) + 1))
                buckets[bisect_left(BUCKETS, took)] += 1
                self._sums[operation] += took  # type: ignore[assignment]

    def begin(self, routes: Sequence[str]) -> None:
        """Start all counts at 0: of a count that begins with its first event, no alert would see
        the increase.
        """
        for route in ("-", *routes):
            for status in ("200", "503"):
                self.add("discreet_requests_total", 0, route=route, status=status)
        for reason in ("late", "full", "slow", "no HTTP"):
            self.add("discreet_closed_total", 0, reason=reason)
        with self._lock:
            for operation in ("spend", "record"):
                self._times.setdefault(operation, [0] * (len(BUCKETS) + 1))
                self._sums[operation] += 0.0  # type: ignore[assignment]

    def text(
        self, heads: Mapping[str, Entry], ready: Mapping[tuple[str, str], bool] = _NOTHING
    ) -> str:
        """All metrics as Prometheus reads them, with the last entry of each ledger that can be
        read.

        `ready` says by part and study what can be used.
        """
        with self._lock:
            samples = [
                (name, labels, float(value)) for (name, labels), value in self._counts.items()
            ]
            for operation, buckets in self._times.items():
                samples += _histogram(operation, buckets, self._sums[operation])
        samples += [
            (
                "discreet_ready",
                (("part", part), *((("study", study),) if study else ())),
                float(passes),
            )
            for (part, study), passes in ready.items()
        ]
        for name, head in heads.items():
            samples += _budget(name, head)
        samples += [("discreet_info", (("software", software()),), 1.0), *_memory()]
        lines: list[str] = []
        for family, (kind, words) in _HELP.items():
            names = {family, *(f"{family}_{part}" for part in ("bucket", "sum", "count"))}
            members = [sample for sample in samples if sample[0] in names]
            if members:
                lines += [f"# HELP {family} {words}", f"# TYPE {family} {kind}"]
                lines += [
                    f"{name}{_labels(labels)} {_number(value)}" for name, labels, value in members
                ]
        return "\n".join(lines) + "\n"


METRICS = Metrics()  # the metrics of this process
# the name of the owner of the metrics key; no person can have this name
MONITOR = "discreet.monitor"
_SHORTEST = 32  # fewest characters of the metrics key


def hashed(key: str) -> bytes:
    return sha256(key.encode()).digest()


def metrics_key(file: Path | None) -> bytes | None:
    """The hash of the metrics key in a file, which only its owner and group may read."""
    if file is None:
        return None
    key = file.read_text("utf-8").strip()
    if stat.S_IMODE(file.stat().st_mode) & 0o037:
        raise InvalidParameter(
            f"only its owner and group may read the file of the metrics key: chmod 640 {file.name}"
        )
    if len(key) < _SHORTEST or not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidParameter(
            f"the metrics key must be one line of {_SHORTEST} or more random characters: "
            f"openssl rand -hex 32 > {file.name}"
        )
    return hashed(key)


class Timed:
    """A ledger whose spends and records are timed."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger

    def spend(self, *args: Any, **options: Any) -> Any:
        with METRICS.timing("spend"):
            return self._ledger.spend(*args, **options)

    def record(self, *args: Any, **options: Any) -> Any:
        with METRICS.timing("record"):
            return self._ledger.record(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


def _budget(name: str, head: Entry) -> Iterator[tuple[str, Labels, float]]:
    """Total, spent and left ε of a study, from one entry of the ledger, so that they agree."""
    labels = (("study", name),)
    amounts = {"budget": head.total, "spent": head.spent, "left": head.total - head.spent}
    yield from (
        (f"discreet_epsilon_{name}", labels, amount / 10**9) for name, amount in amounts.items()
    )
    yield "discreet_ledger_entries", labels, float(head.number)


def _histogram(
    operation: str, buckets: list[float], total: float
) -> Iterator[tuple[str, Labels, float]]:
    name, labels, passed = "discreet_ledger_seconds", (("operation", operation),), 0.0
    for end, count in zip([*map(str, BUCKETS), "+Inf"], buckets, strict=True):
        passed += count
        yield f"{name}_bucket", (*labels, ("le", end)), passed
    yield f"{name}_sum", labels, total
    yield f"{name}_count", labels, passed


def _memory() -> list[tuple[str, Labels, float]]:
    """The memory of this process, on Linux."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return []
    import resource

    return [("process_resident_memory_bytes", (), float(pages * resource.getpagesize()))]


def _labels(labels: Labels) -> str:
    r"""Labels in braces, as Prometheus escapes them.

    >>> print(_labels((("study", 'a"b\n'),)))
    {study="a\"b\n"}
    """
    escaped = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
    pairs = (
        f'{name}="{"".join(escaped.get(letter, letter) for letter in value)}"'
        for name, value in labels
    )
    return f"{{{','.join(pairs)}}}" if labels else ""


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
