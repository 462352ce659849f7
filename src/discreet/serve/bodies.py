"""The bodies of HTTP, described once.

`schema` checks requests against these types and writes OpenAPI from them; the desk and the client
use them as types. A body is the JSON itself, as a `TypedDict`. In `Annotated`, a text describes the
field for a refusal, and `Words` are further keywords of JSON Schema. Exact numbers are texts; in a
question they may also be JSON numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from discreet.ask.statistics import STATISTICS
from discreet.ask.statistics import Question as PythonQuestion
from discreet.serve.refusals import Refusal as HttpRefusal
from discreet.show.json import (
    Exact,
    MeasuredSet,
    PlanJson,
    PlanLine,
    ReportLineJson,
    ReportPlanJson,
    Words,
)

# the ledger accepts it after the longest name and the prefix of a report
REQUEST_ID = "[A-Za-z0-9._-]{1,40}"
_REQUEST = "1 to 40 of the characters A–Z, a–z, 0–9, '.', '_' and '-'"
KINDS: dict[str, type[Any]] = {
    row.question.__name__: row.question for row in STATISTICS.values() if row.question
}
FORMATS = {  # of an answer
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "png": "image/png",
}

NUMBER_LENGTH = 60  # characters of a number that is a text
Number: TypeAlias = Annotated[
    int | str | Decimal,
    'a number such as 0.1, "0.1" or "1/3"',
    Words({"$ref": "#/components/schemas/Number"}),
]
NUMBER = {
    "oneOf": [{"type": "number"}, {"type": "string", "maxLength": NUMBER_LENGTH}],
    "description": 'a number, or its text: 0.1, "0.1", "1/3"',
}


class Ask(TypedDict):
    """One statistic; `question_of` says which fields a kind takes."""

    kind: Annotated[str, f"one of {', '.join(KINDS)}", Words(enum=list(KINDS))]
    of: NotRequired[Annotated[str | None, "an expression, as a text"]]
    share: NotRequired[
        Annotated[Number | list[Number], "a number such as 0.25, or a list of such numbers"]
    ]
    sample: NotRequired[Annotated[bool, "true or false"]]
    bins: NotRequired[Annotated[list[Number] | None, "a list of numbers"]]


class Question(TypedDict):
    """A question and its cost: `sql`, or `ask` with `where` and `by`; `epsilon` or `within`."""

    study: Annotated[str, "the name of a study"]
    sql: NotRequired[Annotated[str, "a SELECT"]]
    where: NotRequired[Annotated[list[str], "a list of conditions"]]
    by: NotRequired[Annotated[list[str], "a list of columns"]]
    ask: NotRequired[
        Annotated[
            dict[str, Ask],
            'an object such as {"people": {"kind": "Count"}}',
            Words(minProperties=1),
        ]
    ]
    epsilon: NotRequired[Number]
    within: NotRequired[
        Annotated[
            Number | dict[str, Number], 'a number such as 0.5, or an object such as {"people": 50}'
        ]
    ]
    confidence: NotRequired[Number]
    simultaneous: NotRequired[Annotated[bool, "true or false"]]
    size: NotRequired[
        Annotated[int, "a whole number from 1 to 10^18", Words(minimum=1, maximum=10**18)]
    ]
    weights: NotRequired[Annotated[dict[str, Number], 'an object such as {"people": 2}']]


class Request(Question):
    """A question to release, under an id that the client chooses."""

    request_id: Annotated[str, _REQUEST, Words(pattern=f"^{REQUEST_ID}$")]


class ReportQuestion(TypedDict):
    """Tables that are asked together, and their cost: `epsilon` for all, or `within` for each."""

    study: Annotated[str, "the name of a study"]
    tables: Annotated[
        dict[str, str],
        'an object such as {"by_county": "SELECT county, count(*) …"}',
        Words(minProperties=1),
    ]
    epsilon: NotRequired[Number]
    within: NotRequired[
        Annotated[
            Number | dict[str, Number],
            'a number such as 50, or an object such as {"by_county": 50}',
        ]
    ]
    confidence: NotRequired[Number]
    simultaneous: NotRequired[Annotated[bool, "true or false"]]
    size: NotRequired[
        Annotated[int, "a whole number from 1 to 10^18", Words(minimum=1, maximum=10**18)]
    ]
    weights: NotRequired[Annotated[dict[str, Number], 'an object such as {"by_county": 2}']]
    title: NotRequired[Annotated[str, "a text"]]
    integers: NotRequired[Annotated[bool, "true or false"]]


class ReportRequest(ReportQuestion):
    """A report to release, under an id that the client chooses."""

    request_id: Annotated[str, _REQUEST, Words(pattern=f"^{REQUEST_ID}$")]


class DiscoveryQuestion(TypedDict):
    """Columns without a public list of keys, and the ε for all of them; δ is that of the study."""

    study: Annotated[str, "the name of a study"]
    columns: Annotated[list[str], "a list of columns", Words(minItems=1)]
    epsilon: Number


# Fields of a body that exclude each other, and the error for a client that sends both.
ONE_OF = {
    ("sql", "ask"): "A question must have either sql or ask.",
    ("epsilon", "within"): None,  # the study itself refuses it
}
_OF_ASK = "where and by belong to ask; in SQL, write WHERE and GROUP BY."
NOT_BOTH = {("sql", "where"): _OF_ASK, ("sql", "by"): _OF_ASK}


class Refusal(TypedDict):
    """Why there is no answer, and what to do."""

    error: str
    advice: str


class Keys(TypedDict):
    """The number of keys of a column, and the first keys."""

    count: int
    first: list[Any]


class Column(TypedDict):
    name: str
    kind: Literal["number", "text", "date", "truth"]
    bounds: list[Any] | None
    keys: Keys | None
    discover: bool
    bins: list[Any] | None
    precision: float | None
    missing: Any
    other: str | None


class Study(TypedDict):
    """The public facts of a study, and what is left."""

    name: str
    table: str
    unit: str
    max_rows: int | None
    max_groups: int | None
    neighbors: Literal["change-one", "add-remove"]
    delta: Exact | None
    discovers: Annotated[
        bool, Words(description="whether its one discovery is still to be made and allowed here")
    ]
    total: Exact
    remaining: Exact
    allotment: Exact | None
    left: Exact
    columns: list[Column]


class Studies(TypedDict):
    """The owner of the token, and the studies that they may use."""

    name: str
    role: Literal["analyst", "custodian"]
    studies: list[Study]


class Point(TypedDict):
    """The errors of a plan's numbers at one ε."""

    epsilon: float
    reach: list[float | None] | None


class Curve(TypedDict):
    """The errors of a plan's numbers as a function of ε, for groups of this size."""

    size: int
    points: list[Point]


class Plan(PlanJson):
    """The cost and the errors of a question, and the errors at other ε."""

    curve: Curve


class Answer(TypedDict):
    """Released numbers: as a table, and as the record in the ledger."""

    id: str
    study: str
    epsilon: Exact
    remaining: Exact
    columns: list[str]
    table: dict[str, list[Any]]
    record: dict[str, Any]
    sha256: str
    view: dict[str, Any]


class ReportPlan(ReportPlanJson):
    """The cost and the errors of a report."""


class Report(TypedDict):
    """Tables that were released together, and their record in the ledger: the noisy cells."""

    id: str
    study: str
    title: str
    epsilon: Exact
    remaining: Exact
    tables: dict[str, Answer]
    record: dict[str, Any]
    sha256: str


class DiscoveryPlan(TypedDict):
    """The cost of a discovery, the meaning of its δ, and how many units a key needs."""

    study: str
    columns: list[str]
    epsilon: Exact
    cost: Exact
    delta: Exact
    meaning: str
    always_from: Annotated[
        int, Words(description="number of units from which a key is always shown")
    ]
    half_from: Annotated[
        int,
        Words(description="number of units from which a key is shown at least half of the time"),
    ]
    asked_before: bool
    remaining: Exact


class Discovery(TypedDict):
    """The keys of the one discovery of a study, by column, sorted; without counts."""

    study: str
    keys: dict[str, list[Any]]
    epsilon: Exact
    delta: Exact
    remaining: Exact


class Entry(TypedDict):
    id: str | None
    study: str
    number: int
    kind: Annotated[str, Words(enum=["create", "allot", "spend", "repeat", "answer", "restore"])]
    analyst: str | None
    question: str | None
    epsilon: Exact | None
    amount: Annotated[int, Words(description="in 10⁻⁹ ε")]
    time: str


class Entries(TypedDict):
    entries: list[Entry]


class Health(TypedDict):
    status: Literal["ok"]


BODIES = (
    *(Refusal, Ask, Question, Request, Studies, Study, Column, Keys, Plan, PlanLine, Curve, Point),
    *(Answer, Entries, Entry, Health),
    *(ReportQuestion, ReportRequest, ReportPlan, ReportLineJson, MeasuredSet, Report),
    *(DiscoveryQuestion, DiscoveryPlan, Discovery),
)


def question_json(question: PythonQuestion) -> dict[str, Any]:
    """A question from Python as JSON.

    >>> question_json(KINDS["Mean"]("age"))
    {'kind': 'Mean', 'of': 'age'}
    """
    return {
        "kind": type(question).__name__,
        **{name: exact_json(value) for name, value in asdict(question).items()},
    }


def question_of(content: Ask) -> PythonQuestion:
    """The question from Python; a field that its kind does not take is refused."""
    kind = KINDS[content["kind"]]
    terms = {name: value for name, value in content.items() if name != "kind"}
    names = {field.name for field in fields(kind)}
    if not set(terms) <= names:
        raise HttpRefusal(
            400,
            f"{kind.__name__} takes only {', '.join(sorted(names)) or 'no fields'}.",
            "Nothing was spent.",
        )
    try:
        question: PythonQuestion = kind(**terms)
    except TypeError:
        raise HttpRefusal(
            400, f"{kind.__name__} needs {', '.join(names)}.", "Nothing was spent."
        ) from None
    return question


def exact_json(value: Any) -> Any:
    """A parameter in the types of JSON; a number becomes the text of its exact value."""
    if isinstance(value, Mapping):
        return {name: exact_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [exact_json(item) for item in value]
    return value if isinstance(value, str | bool | int | None) else str(value)
