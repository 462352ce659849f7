import json

import pytest

import discreet
from discreet.serve.bodies import Question, question_json, question_of
from discreet.serve.refusals import Refusal
from discreet.serve.schema import read


@pytest.mark.parametrize(
    "question",
    [
        discreet.Count(),
        discreet.Count("age"),
        discreet.Mean("age"),
        discreet.Std("age", sample=True),
        discreet.Quantile("age", "0.9"),
        discreet.Quantile("age", ["1/4", "3/4"]),
        discreet.Histogram("age", [0, 18, 120]),
        discreet.Proportion("age > 3"),
    ],
    ids=repr,
)
def test_a_question_is_the_same_on_the_other_side(question):
    assert question_of(json.loads(json.dumps(question_json(question)))) == question


def test_a_number_travels_exactly():
    assert question_json(discreet.Quantile("age", 0.1))["share"] == "0.1"


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"kind": "Everything"},
        {"kind": "__class__"},
        {"kind": ["Mean"]},
        {"kind": "Mean"},
        {"kind": "Mean", "of": 3},
        {"kind": "Count", "of": "age", "sql": "x"},
        {"kind": "Std", "of": "age", "sample": 1},
        {"kind": "Quantile", "of": "age", "share": [True]},
    ],
    ids=repr,
)
def test_what_is_no_question_is_refused(told):
    body = json.dumps({"study": "people", "ask": {"age": told}, "epsilon": "1"}).encode()
    with pytest.raises(Refusal):
        question_of(read(body, Question)["ask"]["age"])
