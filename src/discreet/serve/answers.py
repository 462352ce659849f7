"""Answers over HTTP: as JSON and back, and as CSV, Parquet, XLSX and PNG.

An answer is its record, which the ledger keeps, and a view: the columns, what is computed from
them, HAVING, ORDER BY and LIMIT. From both, a client builds the same `Answer` as the server.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from discreet.ask.expression import Column
from discreet.ask.keys.column import Keys
from discreet.ask.kinds import kind_of
from discreet.ask.query import Combined, Group, Named, Number, Output, Query, Test
from discreet.errors import EngineFailed, InvalidParameter
from discreet.outside import read_fraction
from discreet.records import from_whole, items_of, unpack
from discreet.release.answer import Answer, columns_json
from discreet.release.reports.report import Report
from discreet.serve import bodies
from discreet.serve.refusals import Refusal
from discreet.serve.schema import json_bytes
from discreet.show.table_files import write_table

_PLAIN = "Ask for json, csv or parquet"
# formats that can only be written to a file, with the most rows and the advice for more
_IN_FILES = {
    # 10,000 rows take minutes and gigabytes
    "png": ("A figure", 300, f"{_PLAIN}, and draw only some rows."),
    # rows are written one by one, which takes a second
    "xlsx": ("A spreadsheet", 20_000, f"{_PLAIN}."),
}
_drawing = threading.Lock()  # the renderer draws one figure at a time
# optional packages that a format needs
_NEEDED = {"png": ("altair", "vl_convert"), "xlsx": ("xlsxwriter",)}


def view_json(query: Query) -> dict[str, Any]:
    return {
        "groups": [
            {
                "name": group.name,
                # the keys of bins are their labels
                "kind": kind_of(group.of) if group.edges is None else "text",
                "edges": None if group.edges is None else [str(edge) for edge in group.edges],
                "other": group.other,
            }
            for group in query.groups
        ],
        "outputs": [[name, _output_json(output)] for name, output in query.outputs],
        "having": None if query.having is None else _test_json(query.having),
        "order": [[_output_json(output), descending] for output, descending in query.order],
        "limit": query.limit,
        "sql": query.sql,
    }


def view_query(view: Mapping[str, Any], content: bytes) -> Query:
    """A query without aggregates that shows this answer with this view."""
    keys = {name: items_of(column) for name, column in unpack(content).keys.items()}
    return Query(
        aggregates=(),
        groups=tuple(_group(group, keys[group["name"]]) for group in view["groups"]),
        outputs=tuple((name, _output(output)) for name, output in view["outputs"]),
        having=None if view["having"] is None else _test(view["having"]),
        order=tuple((_output(output), descending) for output, descending in view["order"]),
        limit=view["limit"],
        sql=view["sql"],
    )


def answer_body(answer: Answer, study: str, view: Mapping[str, Any]) -> bytes:
    """An answer as JSON, with all that a client needs to build it; the record is the ledger's."""
    record = json_bytes(answer.full_record)
    fields = {
        "id": answer.entry,
        "study": study,
        "epsilon": str(answer.epsilon),
        "remaining": str(answer.remaining),
        "columns": answer.columns,
        "sha256": sha256(record).hexdigest(),
        "view": view,
        "table": columns_json(answer),
    }
    return json_bytes(fields)[:-1] + b',"record":' + record + b"}"


def report_body(report: Report, study: str) -> bytes:
    """A report as JSON: its tables, each an answer, and its record, byte for byte the ledger's."""
    fields = {
        "id": report.entry,
        "study": study,
        "title": report.plan.title,
        "epsilon": str(report.epsilon),
        "remaining": str(report.remaining),
        "sha256": sha256(report.content).hexdigest(),
    }
    tables = [
        json.dumps(name, ensure_ascii=False).encode()
        + b":"
        + answer_body(answer, study, view_json(answer.query))
        for name, answer in report.tables.items()
    ]
    return (
        json_bytes(fields)[:-1]
        + b',"tables":{'
        + b",".join(tables)
        + b'},"record":'
        + report.content
        + b"}"
    )


def content_of(body: bodies.Answer | bodies.Report) -> bytes:
    """The record of a body as bytes, checked against its hash."""
    content = json_bytes(body["record"])
    if sha256(content).hexdigest() != body["sha256"]:
        raise EngineFailed(
            "the answer was damaged on the network; ask again, at no further cost", spent=True
        )
    return content


def answer_of(body: bodies.Answer) -> Answer:
    """The answer that `answer_body` wrote."""
    content_of(body)
    content = from_whole(body["record"]).pack()
    return Answer(
        content=content,
        query=view_query(body["view"], content),
        remaining=read_fraction(body["remaining"]),
        entry=body["id"],
    )


def offered_formats() -> list[str]:
    """The formats of an answer that the installed packages can write."""
    return [form for form in bodies.FORMATS if all(map(find_spec, _NEEDED.get(form, ())))]


def table_bytes(answer: Answer, form: str) -> bytes:
    """The table of an answer in a format that is not JSON."""
    if form not in _IN_FILES:
        sink = io.BytesIO()
        write_table(answer, form, sink)
        return sink.getvalue()
    name, most, advice = _IN_FILES[form]
    if len(answer) > most:
        sentence = (
            f"{name} over HTTP can have at most {most:,} rows, but this answer has {len(answer):,}."
        )
        raise Refusal(406, sentence, advice)
    try:
        with TemporaryDirectory() as folder:
            return _saved(answer, Path(folder) / f"answer.{form}").read_bytes()
    except InvalidParameter as error:
        raise Refusal(406, str(error), f"{_PLAIN}.") from None


def _saved(answer: Answer, file: Path) -> Path:
    if file.suffix == ".xlsx":
        return answer.save(file)
    from discreet.show import figures

    with _drawing:
        return figures.save(figures.make("release", answer=answer), file)


def _group(view: Mapping[str, Any], keys: list[Any]) -> Group:
    """A group column with what an answer needs: its keys, in their kind."""
    kind, edges, other = view["kind"], view["edges"], view["other"]
    read: dict[str, Callable[[Any], Any]] = {
        "number": read_fraction,
        "date": datetime.fromisoformat,
    }
    named = keys if other is None else keys[:-1]
    return Group(
        name=view["name"],
        of=Column(view["name"], kind),
        keys=Keys.of(map(read.get(kind, lambda key: key), named)),
        other=other,
        edges=None if edges is None else tuple(map(read_fraction, edges)),
    )


def _output_json(output: Output) -> dict[str, Any]:
    match output:
        case Named(name):
            return {"name": name}
        case Number(value):
            return {"number": str(value)}
        case Combined(sign, left, right):
            return {"sign": sign, "left": _output_json(left), "right": _output_json(right)}


def _output(view: Mapping[str, Any]) -> Output:
    if "name" in view:
        return Named(view["name"])
    if "number" in view:
        return Number(read_fraction(view["number"]))
    return Combined(view["sign"], _output(view["left"]), _output(view["right"]))


def _test_json(test: Test) -> dict[str, Any]:
    parts = [
        _test_json(part) if isinstance(part, Test) else _output_json(part) for part in test.parts
    ]
    return {"sign": test.sign, "parts": parts}


def _test(view: Mapping[str, Any]) -> Test:
    return Test(
        view["sign"],
        tuple(_test(part) if "parts" in part else _output(part) for part in view["parts"]),
    )
