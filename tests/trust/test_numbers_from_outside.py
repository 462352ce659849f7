"""TRUST 61: a text from outside costs what its length allows, whatever numbers, names and levels
are in it.

Every number of a file, a body or an answer is replaced, one at a time, by numbers that stand for
gigabytes of digits, by texts that are none, by a hundred thousand levels, and by two equal names.
Each is read, or refused in one sentence. A process of its own is stopped after minutes, so that a
number that expands is a failure and not a hang.

The control is Python itself, which reads such a number for as long as it takes.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import discreet
from discreet import DiscreetError, LedgerDamaged
from discreet.ask.reportfile import ReportFile
from discreet.ledger.chain import digest, sha256_of
from discreet.ledger.place import ledger_keys
from discreet.outside import _TEXT, MOST_DIGITS
from discreet.serve import bodies
from discreet.serve.client import Remote, Server
from discreet.serve.refusals import Refusal
from discreet.serve.schema import parse_json, read
from discreet.verify import check, verify_release

SOURCE = Path(discreet.__file__).parent
PATIENCE = 300  # seconds for a process that takes about ten

HUGE = "9" * 10**6
NUMBERS = {
    "a large exponent": "1e30000000",
    "a small exponent": "1e-30000000",
    "a negative one": "-1e30000000",
    "many digits": HUGE,
    "many decimals": f"0.{HUGE}",
    "no number": "NaN",
    "no end": "Infinity",
    "beyond doubles": "1e400",
    "many": str(10**18 + 1),
    "nothing": "null",
    "a truth value": "true",
    "another sign": "-1",
    "zero": "0",
    "a double": "0.1",
}
TEXTS = {
    "a large exponent in a text": "1e30000000",
    "a small exponent in a text": "1e-30000000",
    "many digits in a text": HUGE,
    "a fraction of many digits": f"1/1{'0' * 10**6}",
    "a fraction of 4,000 digits": f"{'7' * MOST_DIGITS}/{'3' * (MOST_DIGITS - 1)}",
    "a division by zero": "1/0",
    "no number in a text": "nan",
    "digits of another script": "\u0663",
    "an empty text": "",
}
WHOLE = {
    "levels": "[" * 100_000 + "]" * 100_000,
    "levels of objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "one name twice": '{"a": 1, "a": 2}',
    "a text that does not end": '"' + '\\"' * 10**5,
}
IS_NUMBER = re.compile(r"-?[0-9]+(/[0-9]+|\.[0-9]+)?")


def changed(content: Any) -> Iterator[tuple[str, str]]:
    """The JSON of a content, by what was changed: each number, in turn, by each of the above."""
    written = {**NUMBERS, **{name: json.dumps(text) for name, text in TEXTS.items()}, **WHOLE}

    def places(part: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        match part:
            case bool():
                return
            case int() | float():
                yield path
            case str() if IS_NUMBER.fullmatch(part):
                yield path
            case dict():
                for name, value in part.items():
                    yield from places(value, (*path, name))
            case list():
                for index, value in list(enumerate(part))[:2]:
                    yield from places(value, (*path, index))

    def replaced(part: Any, path: tuple[Any, ...]) -> Any:
        if not path:
            return "@@"
        if isinstance(part, dict):
            return {**part, path[0]: replaced(part[path[0]], path[1:])}
        return [*part[: path[0]], replaced(part[path[0]], path[1:]), *part[path[0] + 1 :]]

    for path in places(content, ()):
        whole = json.dumps(replaced(content, path), ensure_ascii=False)
        for name, text in written.items():
            yield f"{name} for {'.'.join(map(str, path))}", whole.replace('"@@"', text)
    for name, text in WHOLE.items():
        yield name, text
    whole = json.dumps(content, ensure_ascii=False)
    first = next(iter(content))
    yield "the first name twice", f"{{{json.dumps(first)}: 1, {whole[1:]}"
    yield "a blank end of 50 MB", whole + " " * 50_000_000
    yield "digits of 50 MB", "9" * 50_000_000
    yield "brackets of 50 MB", "[" * 50_000_000


def in_one_sentence(name: str, work: Callable[[], object]) -> bool:
    """Whether the work is refused, in one short line; anything but a refusal is an error of the
    test.
    """
    try:
        work()
    except DiscreetError as refusal:
        words = str(refusal)
        assert words, name
        assert "\n" not in words, name
        assert len(words) < 1_000, name
        return True
    return False


def certificates(folder: Path) -> int:
    """Certificates of all laws."""
    refused, file = 0, folder / "some.certificate.json"
    terms: dict[str, Any] = {"bounds": (0, 120), "epsilon": "0.3"}
    for certificate in (
        discreet.verify.certify("count", epsilon="0.3"),
        discreet.verify.certify("mean", **terms, neighbors="add-remove"),
        discreet.verify.certify("median", **terms, n=1000),
        discreet.verify.certify("randomized_response", epsilon="0.3"),
        discreet.verify.certify("laplace_mechanism", sensitivity=1, epsilon="0.3"),
    ):
        for name, text in changed(certificate.to_dict()):
            file.write_text(text, "utf-8")
            refused += in_one_sentence(f"{certificate.query}: {name}", lambda: check(file))
    return refused


def releases(_folder: Path) -> int:
    """Releases that were saved as JSON."""
    found = discreet.mean([20.0, 40.0] * 100, bounds=(0, 120), epsilon=1)
    counts = discreet.histogram([20.0, 40.0] * 100, bins=[0, 30, 120], epsilon=1)
    return sum(
        in_one_sentence(name, lambda text=text, release=release: type(release).from_json(text))
        for release in (found, counts)
        for name, text in changed(json.loads(release.to_json()))
    )


def signatures(folder: Path) -> int:
    """Signatures, and the records that they sign."""
    import pyarrow as pa

    from discreet.files.signature import Signer, measured, new_keys

    private, public = new_keys(folder / "custodian")
    people = pa.table({"age": [34.0, 71.5] * 100})
    policy = discreet.Policy(source=people, epsilon=1, columns={"age": {"bounds": (0, 120)}})
    with discreet.Study(policy, ledger=folder / "study.ledger") as study:
        answer = study.sql("SELECT avg(age) AS age FROM data", epsilon="0.5").release()
        saved = answer.save(folder / "ages.csv")
        answer.sign(saved, key=private)
    [signature] = folder.glob("*.signature.json")
    content, refused = json.loads(signature.read_bytes()), 0
    for name, text in changed(content):
        signature.write_text(text, "utf-8")
        refused += in_one_sentence(name, lambda: verify_release(signature, key=public))
    [record] = folder.glob("*.release.json")
    signer = Signer.load(private)
    for name, text in changed(json.loads(record.read_bytes())):
        record.write_text(text, "utf-8")
        signed = {
            **content["signed"],
            "files": {**content["signed"]["files"], record.name: measured(record)},
        }
        whole = {**content, "signed": signed, "signature": signer.sign(signed)}
        signature.write_text(
            json.dumps(whole, ensure_ascii=False, sort_keys=True, indent=1) + "\n", "utf-8"
        )
        refused += in_one_sentence(name, lambda: verify_release(signature, key=public))
    return refused


QUESTIONS: dict[type[Any], dict[str, Any]] = {
    bodies.Question: {
        "study": "people",
        "ask": {
            "n": {"statistic": "count"},
            "q": {"statistic": "quantile", "of": "age", "share": 0.5},
        },
        "epsilon": 0.1,
        "confidence": "0.95",
        "size": 1000,
        "weights": {"n": 2},
        "within": {"n": 50},
    },
    bodies.ReportRequest: {
        "study": "people",
        "tables": {"all": "SELECT count(*) FROM people"},
        "within": {"all": 50},
        "confidence": 0.9,
        "size": 10,
        "weights": {"all": 1},
        "request_id": "a",
    },
}


def requests(_folder: Path) -> int:
    """Bodies of requests."""
    return sum(
        in_one_sentence(name, lambda text=text, kind=kind: read(text.encode(), kind))
        for kind, question in QUESTIONS.items()
        for name, text in changed(question)
    )


def answers(folder: Path) -> int:
    """What a server answers."""
    from discreet.serve.limits import Limits
    from serving import BY_COUNTY, body, served

    refused = 0
    with served(folder, limits=Limits(quantum=0)) as site:
        client = site.client("bob")
        study = client.get("/studies").json()
        plan = client.post("/plan", json=body(request_id=None)).json()
        answer = client.post("/release", json=body()).json()
    remote = Server("https://example.org", "token")
    seen = Remote(remote, "people")
    asked: list[tuple[Any, Callable[[], object]]] = [
        (study, lambda: (seen.remaining, repr(seen))),
        (plan, lambda: seen.sql(BY_COUNTY, epsilon="0.1")),
        (answer, lambda: seen.answer("a")),
    ]
    for content, ask in asked:
        for name, text in changed(content):
            remote._client.close()
            reply = httpx.MockTransport(lambda _, text=text: httpx.Response(200, text=text))
            remote._client = httpx.Client(base_url="https://example.org", transport=reply)
            refused += in_one_sentence(name, ask)
    return refused


KINDS = {work.__name__: work for work in (certificates, releases, signatures, requests, answers)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_number_of_a_text_from_outside_costs_more_than_its_length(kind):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), *sys.path]),
    }
    run = subprocess.run(
        [sys.executable, __file__, kind],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment,
    )
    assert run.returncode == 0, run.stderr[-2_000:]
    assert int(run.stdout) > 50


TOML = {
    "a name of many parts": f"{'.'.join('a' * 50_000)} = 1",
    "a quoted name of many parts": ".".join(['"a"'] * 50_000) + " = 1",
    "a table of many parts": f"[{' . '.join('a' * 50_000)}]",
    "a name of many parts in a table": f"a = {{ {'.'.join('b' * 50_000)} = 1 }}",
    "many digits": f"epsilon = {HUGE}",
    "many digits of base 16": f"epsilon = 0x{'f' * 10**6}",
    "a large exponent": "epsilon = 1e30000000",
    "no end": "epsilon = inf",
    "no number": "epsilon = nan",
    "levels": f"epsilon = {'[' * 100_000}",
    "one name twice": "epsilon = 1\nepsilon = 2",
}


@pytest.mark.parametrize("name", TOML)
def test_a_policy_and_a_report_cost_what_their_length_allows(tmp_path, name):
    file = tmp_path / "study.toml"
    rest = {
        discreet.Policy: (
            'source = "a.csv"\nunit = "row"\nneighbors = "change-one"\n[columns]\nage = {}\n'
        ),
        ReportFile: 'study = "study.toml"\n[tables.a]\nsql = "SELECT 1"\n',
    }
    for kind, words in rest.items():
        file.write_text(f"{TOML[name]}\n{words}", "utf-8")
        assert in_one_sentence(name, lambda kind=kind: kind.load(file))
    in_one_sentence(name, lambda: ledger_keys(file))


def test_control_pythons_reader_takes_the_square_of_a_name():
    """Twice the parts, four times the copies: each part copies all parts before it."""
    source = Path(__import__("tomllib").__file__).with_name("_parser.py").read_text("utf-8")
    assert "key += (key_part,)" in source


@pytest.mark.parametrize(
    "epsilon", ["1e30000000", HUGE, f"1/1{'0' * 10**6}", "nan", "1e-30000000", "", "1/0"]
)
def test_a_ledger_with_such_an_epsilon_is_damaged(tmp_path, epsilon):
    """With hashes that fit, as anyone can compute them who can write to the file."""
    import sqlite3

    place = tmp_path / "study.ledger"
    with discreet.Ledger.open(place, new=True) as ledger:
        ledger.create("survey", 10)
        ledger.record(ledger.spend("a", "question", "1/3", study="survey"), b"answer")
        [entry] = [entry for entry in ledger.entries("survey") if entry.kind == "spend"]
        mark = digest(ledger.id, replace(entry, epsilon=epsilon), sha256_of(None))
    with sqlite3.connect(place) as file:
        triggers = file.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            file.execute(f'DROP TRIGGER "{name}"')
        (table,) = file.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE '%entry'"
        ).fetchone()
        statement = f'UPDATE "{table}" SET epsilon = ?, hash = ? WHERE number = ?'  # noqa: S608
        file.execute(statement, (epsilon, mark, entry.number))
    with pytest.raises(LedgerDamaged), discreet.Ledger.open(place) as ledger:
        ledger.verify()


def test_an_answer_of_a_server_is_unpacked_up_to_a_limit(monkeypatch):
    """A megabyte of gzip may be a gigabyte of blanks."""
    import gzip

    from discreet.serve import client

    monkeypatch.setattr(client, "_LARGEST", 2**20)
    packed = gzip.compress(b" " * 2**24)
    assert len(packed) < 2**16
    headers = {"content-encoding": "gzip"}
    remote = Server("https://example.org", "token")
    for content, words in (
        (packed, "sent more than 1,048,576 bytes"),
        (b"no gzip", "did not answer"),
    ):
        reply = httpx.MockTransport(
            lambda _, content=content: httpx.Response(200, content=content, headers=headers)
        )
        remote._client.close()
        remote._client = httpx.Client(base_url="https://example.org", transport=reply)
        with pytest.raises(discreet.EngineFailed, match=words):
            remote.get("/studies", bodies.Studies)


def test_a_body_of_escapes_is_searched_once():
    """Half a minute of a thread for 64 KiB, if the search began anew at each quote."""
    body = b'{"a": "' + b'\\"' * 32_000
    with pytest.raises(Refusal, match="must be JSON in UTF-8"):
        parse_json(body)
    # a text without its end is one text: the search does not begin anew at each of its quotes
    assert list(map(len, _TEXT.findall(body))) == [3, len(body) - 6]


READERS = {"loads", "load", "JSONDecoder"}


def outside_readers(tree: ast.AST) -> Iterator[int]:
    """The lines that read JSON, TOML, or a fraction from a text with Python's own readers."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names) if any(
                name.name in ("tomllib", "yaml", "pickle") for name in names
            ):
                yield node.lineno
            case ast.ImportFrom(module="json" | "tomllib" | "ast"):
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="json"), attr=name) if name in READERS:
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="json"), args=[], keywords=[]):  # of a response
                yield node.lineno
            case ast.Call(func=ast.Name(id="Fraction" | "Decimal"), args=[of], keywords=[]) if (
                is_text(of)
            ):
                yield node.lineno
            case ast.Call(
                func=ast.Name(id="map"), args=[ast.Name(id="Fraction" | "Decimal"), of]
            ) if is_text(of):
                yield node.lineno


def is_text(node: ast.expr) -> bool:
    """Whether this is a part of something that was read: a field by its name, a text, or what `str`
    makes.
    """
    match node:
        case ast.Subscript(value=ast.Name(id=table)) if table.isupper():  # a constant
            return False
        case ast.Subscript(slice=ast.Constant(value=str()) | ast.Name(id="name")):
            return True
        case ast.Call(func=ast.Name(id="str") | ast.Attribute(attr="get" | "group")):
            return True
        case (
            ast.Name(id="text" | "texts")
            | ast.Attribute(value=ast.Name(id="row" | "entry" | "begun"))
        ):
            return True
        case ast.BoolOp(values=[first, *_]):
            return is_text(first)
    return False


def test_only_one_module_reads_texts_from_outside():
    """The parameters of a call are read beside it, with their own limits, and bodies make decimals
    of its numbers.
    """
    found = {
        f"{file.relative_to(SOURCE)}:{line}"
        for file in SOURCE.rglob("*.py")
        for line in outside_readers(ast.parse(file.read_text("utf-8")))
    }
    assert {place.partition(":")[0] for place in found} == {
        "outside.py",
        "parameters.py",
        "serve/schema.py",
    }, found


@pytest.mark.parametrize(
    "code",
    [
        "import json\njson.loads(a)",
        "import tomllib",
        "from json import loads",
        "response.json()",
        "Fraction(record['epsilon'])",
        "Fraction(str(key))",
        "tuple(map(Fraction, line['noise']))",
        "Fraction(entry.epsilon or 0)",
        "Decimal(text)",
    ],
)
def test_the_guard_sees_each_way(code):
    assert list(outside_readers(ast.parse(code)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(KINDS[sys.argv[1]](Path(made)))
