"""docs/reference.md: every public name with its signature and its docstring, from the code itself.

    python tools/reference.py -o docs/reference.md

The page is written when all of it is there, so that a failure leaves the old page.
"""

from __future__ import annotations

import argparse
import ast
import doctest
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import discreet
from discreet.ask.statistics import STATISTICS
from discreet.release.answer import Answer
from discreet.release.plan import Plan
from discreet.release.profiles.profile import ColumnProfile, Profile, Share, UnitProfile
from discreet.release.reports.plan import ReportPlan
from discreet.release.reports.report import Report
from discreet.release.statistics.response import Response

INTRODUCTION = """# Reference

Every public name, made by `python tools/reference.py` from the docstrings. Names without a prefix are those of
`discreet`. What a statistic does and why: [the statistics](statistics.md). The command line: [commands](cli.md).

`**account` stands for `ledger=`, `study=`, `request_id=`, `data_name=`, `data_version=` and `analyst=`: with a `Ledger`
and the name of a study the call is charged before the data is looked at, and with a `request_id`, or with a `data_name`
and its `data_version`, it can be repeated, free.
`neighbors` is "change-one" (how many units there are is public) or "add-remove" (it is not)."""

SECTIONS = (
    ("Statistics of a column in memory", "moments", "ranks", "distributions", "release"),
    ("Algorithm 1, and the laws", "laplace_mechanism", "laplace", "response"),
    ("Studies", "study", "policy", "client"),
    ("Questions of a study", "statistics"),
    ("The ledger", "ledger"),
    ("Errors", "errors"),
)
"""Titles, and the modules whose public names stand under them."""

_SENTENCES = 160  # characters of the first sentences of a docstring

_PROFILES = (Profile, ColumnProfile, UnitProfile, Share)
GIVEN = {kind.__name__: kind for kind in (Plan, Answer, ReportPlan, Report, Response, *_PROFILES)}
"""What public functions give back."""

MADE_ELSEWHERE = (*GIVEN.values(), discreet.Release, discreet.Releases, discreet.Ledger)
"""Nobody calls these classes."""


def page() -> str:
    """The whole text."""
    parts = [INTRODUCTION]
    names = {name: getattr(discreet, name) for name in dir(discreet) if name != "__version__"}
    functions = {
        name: value
        for name, value in names.items()
        if not isinstance(value, ModuleType) and name not in GIVEN
    }
    for title, *homes in SECTIONS:
        found = {
            name: value
            for name, value in functions.items()
            if value.__module__.split(".")[-1] in homes
        }
        parts += [
            f"## {title}",
            *([statistics()] if "statistics" in homes else []),
            *described(found, ""),
        ]
        functions = {name: value for name, value in functions.items() if name not in found}
    if functions:
        raise SystemExit(f"no section for {', '.join(functions)}")
    parts += ["## What they give back", *described(GIVEN, "")]
    for name, module in names.items():
        if isinstance(module, ModuleType):
            parts += [f"## `{name}`", prose(module), *described(members(module), f"{name}.")]
    return "\n\n".join(part for part in parts if part) + "\n"


def statistics() -> str:
    """The statistics of a study: the question in Python, and the names in SQL."""
    lines = ["| in Python | in SQL | over n − 1 |", "|---|---|---|"]
    for row in STATISTICS.values():
        if row.question is not None:
            names = [", ".join(f"`{name}`" for name in some) for some in (row.sql, row.sample)]
            lines.append(f"| `{row.question.__name__}` | {' | '.join(names)} |")
    return "\n".join(lines)


def members(module: ModuleType) -> dict[str, Any]:
    """The public names of a module: those that it lists, or its own functions."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(module).items()
            if _own(value, module) and not name.startswith("_")
        ]
    return {name: getattr(module, name) for name in listed}


def _own(value: object, module: ModuleType) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__


def described(names: dict[str, Any], prefix: str) -> Iterator[str]:
    """A part for each name."""
    for name, value in names.items():
        if isinstance(value, ModuleType):
            yield f"### `{prefix}{name}`"
            yield prose(value)
            for inner, function in members(value).items():
                yield f"**`{name}.{inner}{signature(function)}`**\n\n{prose(function)}"
        elif inspect.isclass(value):
            yield from _class(f"{prefix}{name}", value)
        else:
            yield f"### `{prefix}{name}`"
            yield f"```text\n{prefix}{name}{signature(value)}\n```"
            yield prose(value)


def _class(name: str, kind: type) -> Iterator[str]:
    yield f"### `{name}`"
    if not issubclass(kind, BaseException) and kind not in MADE_ELSEWHERE:
        yield f"```text\n{name}{signature(kind)}\n```"
    yield prose(kind)
    lines = [f"- `.{field}` {text}" for field, text in fields(kind).items()]
    ours = [base for base in kind.__mro__[::-1] if base.__module__.startswith("discreet.")]
    for method, value in {
        name: value for base in ours for name, value in vars(base).items()
    }.items():
        if method.startswith("_"):
            continue
        if isinstance(value, property | cached_property):
            lines.append(f"- `.{method}` {first(value)}")
        elif inspect.isfunction(value) or isinstance(value, classmethod | staticmethod):
            bound = getattr(kind, method) if not inspect.isfunction(value) else value
            lines.append(
                f"- `.{method}{signature(bound, skip_self=inspect.isfunction(value))}`"
                f" {first(bound)}"
            )
    yield "\n".join(line.rstrip() for line in lines)


def signature(value: Any, *, skip_self: bool = False) -> str:
    """The parameters, without annotations: the docstrings say what they are."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in list(found.parameters.values())[1 if skip_self else 0 :]
    ]
    text = str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    return re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)


def fields(kind: type) -> dict[str, str]:
    """The public fields of a dataclass, with the text that stands below each of them."""
    if not hasattr(kind, "__dataclass_fields__"):
        return {}
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    if not isinstance(body, ast.ClassDef):
        return {}
    found: dict[str, str] = {}
    for line, following in zip(body.body, [*body.body[1:], None], strict=True):
        if (
            isinstance(line, ast.AnnAssign)
            and isinstance(line.target, ast.Name)
            and line.target.id[0] != "_"
        ):
            match following:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[line.target.id] = " ".join(text.split())
                case _:
                    found[line.target.id] = ""
    return found


def prose(value: object) -> str:
    """The docstring without its examples, which are run where they stand, and with its parameters
    as a list.
    """
    parts = doctest.DocTestParser().parse(inspect.getdoc(value) or "")
    text = "".join(part for part in parts if isinstance(part, str)).strip()
    text = re.sub(r"^Examples\n-+\n+", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(\w+)\n-+$", r"*\1*\n", text, flags=re.MULTILINE)
    text = re.sub(r"^(\S.*)\n    (\S.*)$", _listed, text, flags=re.MULTILINE)
    return re.sub(r"docs/(\w+\.md)", r"[\1](\1)", text)


def _listed(entry: re.Match[str]) -> str:
    """A parameter, or what comes back, with what is said of it."""
    names, _, kind = entry[1].replace("(lower, upper)", "lower and upper").partition(" : ")
    names = ", ".join(f"`{name}`" for name in names.split(", "))
    return f"- {names}{f' ({kind})' if kind else ''}: {entry[2]}"


def first(value: object) -> str:
    """The first sentences of a docstring on one line: its first paragraph, and a short second one."""
    paragraphs = [" ".join(part.split()) for part in prose(value).split("\n\n")]
    several = " ".join(paragraphs[:2])
    return paragraphs[0] if len(several) > _SENTENCES or several.count("*") else several


def main() -> None:
    """Write the page to a file, or print it."""
    parser = argparse.ArgumentParser(description="The reference of all public names.")
    parser.add_argument(
        "-o", dest="target", type=Path, help="the file to write; by default the page is printed"
    )
    target, text = parser.parse_args().target, page()
    if target is None:
        sys.stdout.write(text)
    else:
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
