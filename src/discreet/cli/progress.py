"""Long work runs in a thread while the terminal shows its progress; Ctrl-C stops it.

When a release stops for any reason, the command says what the ledger has recorded: that nothing was
spent, or how much under which entry. The ledger is certain, since a spend is on disk before the
first row is read.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.release.study import Study

Result = TypeVar("Result")

NOTHING = "Nothing was spent."
UNKNOWN = "The ledger records what was spent: see discreet ledger show."
_PATIENCE = 1.0  # seconds after which a progress bar appears
# seconds for interrupted work to end; the files that it wrote until then are complete, or absent
_LAST_WAIT = 10.0


def watched(work: Callable[[], Result], doing: str, engine: Any = None) -> Result:
    """The result of `work`; a terminal shows progress, and Ctrl-C interrupts the engine."""
    result: Future[Result] = Future()
    # not Thread.join: after an interrupt it takes a running thread for one that has ended
    ended = threading.Event()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)
        finally:
            ended.set()

    getattr(engine, "watch", lambda: None)()
    threading.Thread(target=run, daemon=True).start()
    try:
        if not ended.wait(_PATIENCE):
            with progress_bar(doing, numbers=False) as advance:
                while not ended.wait(0.1):
                    percent = getattr(engine, "progress", lambda: -1.0)()
                    advance(max(percent, 0), 100 if percent >= 0 else None)
    except KeyboardInterrupt:
        _stop(ended, getattr(engine, "interrupt", lambda: None))
        raise KeyboardInterrupt(*[] if ended.is_set() else [UNKNOWN]) from None
    return result.result()


def open_study(
    policy: str, ledger: str | None, anchor: str | None, time_limit: str | None = None
) -> Study:
    from discreet.release.study import open as opened

    return watched(
        lambda: opened(policy, ledger=ledger, anchor=anchor, time_limit=time_limit), "opening"
    )


def released(
    study: Study,
    release: Callable[..., Result],
    *,
    request_id: str | None,
    analyst: str | None,
    kind: str = "",
) -> Result:
    """The answer; if it fails, the error says what was spent.

    `kind` is the prefix of its entries.
    """
    from discreet.ledger.questions import new_request_id

    request = new_request_id() if request_id is None else request_id
    entry = kind + request
    try:
        return watched(
            lambda: release(request_id=request, analyst=analyst), "reading", study.engine
        )
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(*stopped.args or (spent_under(study, entry),)) from None
    except DiscreetError as error:
        raise _with(error, spent_under(study, entry)) from None


def spent_under(study: Study, request_id: str) -> str:
    """A sentence that says what the ledger has recorded for a request."""
    from discreet.formats import shown
    from discreet.ledger.chain import in_epsilon

    try:
        entry = study.budget.entry(request_id)
    except DiscreetError:
        return UNKNOWN
    if entry is None or not entry.amount:
        return NOTHING
    return (
        f"ε {shown(in_epsilon(entry.amount))} was spent (entry {entry.number}). Asking the same"
        " again is free."
    )


@contextmanager
def progress_bar(
    doing: str, *, numbers: bool = True
) -> Iterator[Callable[[float, int | None], None]]:
    """A function to call with the work done and, if known, the total; a terminal shows both."""
    if not sys.stderr.isatty():
        yield lambda _completed, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    first, last = ([], [TextColumn("{task.completed:,}")]) if numbers else ([SpinnerColumn()], [])
    columns = (*first, TextColumn("{task.description}"), BarColumn(), *last, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda completed, total: bar.update(task, completed=completed, total=total)


@contextmanager
def spending_nothing() -> Iterator[None]:
    """Add to errors and interrupts inside that nothing was spent."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(NOTHING) from None
    except DiscreetError as error:
        raise _with(error, NOTHING) from None


def _with(error: DiscreetError, sentence: str) -> DiscreetError:
    """The error with one more sentence, unless it already says so."""
    text = str(error)
    if sentence == NOTHING and "nothing was spent" in text.lower():
        return error
    return type(error)(f"{text if text.endswith('?') else text.rstrip('.') + '.'} {sentence}")


def _stop(ended: threading.Event, interrupt: Callable[[], None]) -> None:
    """Interrupt the engine repeatedly until the work ends: a statement may be about to start."""
    with suppress(KeyboardInterrupt):  # a second Ctrl-C ends the wait
        for _ in range(int(_LAST_WAIT / 0.05)):
            interrupt()
            if ended.wait(0.05):
                return
