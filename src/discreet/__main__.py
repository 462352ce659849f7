"""The entry point of the command line: at most one sentence on an error, and an exit code that says
what happened.

    0 done                          1 unexpected error       2 refused, nothing was done
    3 too little ε left             4 the ledger is damaged  5 a part of the system failed
    130 interrupted

There is never a traceback: a Python error could quote a row. An unexpected error is reported by its
type and line. Help texts are generated from the commands (help.txt), because importing the commands
takes longer than starting Python.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from discreet.errors import BudgetExceeded, DiscreetError, EngineFailed, LedgerDamaged, one_line

UNEXPECTED, REFUSED, INTERRUPTED = 1, 2, 130
CODES = {BudgetExceeded: 3, LedgerDamaged: 4, EngineFailed: 5}


def main() -> None:
    """Run the command line, and exit with its code."""
    code = ended()
    if code:  # a thread of Arrow may still be reading, which makes a normal exit of Python crash
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def ended() -> int:
    """The exit code of a command, after its output is written."""
    try:
        code = 0 if _helped(sys.argv[1:]) else _run()
        sys.stdout.flush()
    except BrokenPipeError:
        _quiet_output()
        code = _report("nobody reads the output any more", UNEXPECTED)
    except KeyboardInterrupt as interrupt:
        _report(
            "interrupted" + ("." if not interrupt.args else f". {interrupt.args[0]}"), INTERRUPTED
        )
        os._exit(INTERRUPTED)  # without waiting for an engine that may still be stopping
    return code


def _helped(words: list[str]) -> bool:
    """Whether help was asked for, and printed."""
    if words and words[-1] != "--help":
        return False
    command = " ".join(["discreet", *words[:-1]])
    with open(os.path.join(os.path.dirname(__file__), "help.txt"), encoding="utf-8") as file:
        texts = dict(text.split("\n", 1) for text in file.read().split("\f")[1:])
    print(texts.get(command, ""), end="")
    return command in texts


def _run() -> int:
    """The exit code of a command; its error is printed."""
    try:
        from typer.main import get_command

        from discreet.cli.app import app

        command = get_command(app)
        # not command.main(), which handles interrupts and broken pipes itself
        with command.make_context("discreet", sys.argv[1:]) as context:
            command.invoke(context)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except DiscreetError as error:
        return _report(
            str(error), next((CODES[kind] for kind in CODES if isinstance(error, kind)), REFUSED)
        )
    except OSError as error:
        name = f" {os.path.basename(error.filename)}" if isinstance(error.filename, str) else ""
        return _report(
            f"the file{name} cannot be used: {error.strerror or type(error).__name__}", REFUSED
        )
    except Exception as error:
        return _unexpected(error)
    return 0


def _unexpected(error: Exception) -> int:
    """The exit code of an error of the command line, or of an unexpected error."""
    if hasattr(error, "format_message"):
        return _report(f"{' '.join(error.format_message().split())} See --help.", REFUSED)
    if hasattr(error, "exit_code"):
        return int(error.exit_code)
    if type(error).__name__ == "Abort":
        raise KeyboardInterrupt("Nothing was spent.") from None
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    line = (
        f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        if trace
        else "nowhere"
    )
    return _report(f"an unexpected {type(error).__name__} at {line}; please report it", UNEXPECTED)


def _report(sentence: str, code: int) -> int:
    try:
        print(f"discreet: {one_line(sentence)}", file=sys.stderr, flush=True)
    except OSError:
        _quiet_output()
    return code


def _quiet_output() -> None:
    """Redirect the output to the null device, so that Python's last flush does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr) if sys.stderr.closed else (sys.stdout,):
        os.dup2(nowhere, stream.fileno())


if __name__ == "__main__":
    main()
