"""TRUST 28: one question in many spellings has one text, so it is charged once; another question
has another.
"""

from __future__ import annotations

import pytest

from asking import POLICY, SCHEMA, one_text, query
from discreet.ask.query import canonical
from discreet.ask.questions import build
from discreet.ask.statistics import Count, Mean

CONDITIONS = [
    "age >= 65 AND sex <> 'f'",
    "sex <> 'f' AND age >= 65",
    "65 <= age AND 'f' <> sex",
    "age >= 65.0 AND sex != 'f'",
    "age >= 6.5e1 AND NOT sex = 'f'",
    "NOT age < 65 AND NOT sex = 'f'",
    "NOT (age < 65 OR sex = 'f')",
    "NOT (sex = 'f' OR 65 > age)",
    "NOT NOT (age >= 65 AND sex <> 'f')",
    "(age >= 65) AND ((sex <> 'f'))",
    "age >= 65 AND sex <> 'f' AND age >= 65",
    "age >= 65 AND (sex <> 'f' AND 65 <= age)",
    "TRUE AND age >= 65 AND sex <> 'f'",
    "(age >= 65 OR FALSE) AND sex <> 'f'",
    "age >= 65 AND sex NOT IN ('f')",
    "age >= 65 AND NOT sex IN ('f', 'f')",
    "(age >= 65) = TRUE AND sex <> 'f'",
    "(age < 65) = FALSE AND sex <> 'f'",
    "age >= 65 AND (sex = 'f') <> TRUE",
    "AGE >= 65 AND Sex <> 'f'",
    '"age" >= 65 AND "sex" <> \'f\'',
    "t.age >= 65 AND t.sex <> 'f'",
    "age >= 0065 AND sex <> 'f'",
    "age >= +65 AND sex <> 'f'",
    "age >= - -65 AND sex <> 'f'",
    "age >= 65 AND sex <> CAST('f' AS VARCHAR)",
    "CAST(age AS DOUBLE) >= 65 AND sex <> 'f'",
    "COALESCE(age) >= 65 AND sex <> 'f'",
    "COALESCE(age, age, NULL) >= 65 AND sex <> 'f'",
    "LEAST(age, age) >= 65 AND sex <> 'f'",
]

SELECTS = [
    "SELECT county, count(*), avg(age) FROM t WHERE {} GROUP BY county",
    "select COUNTY, COUNT(*), AVG(AGE) from T where {} group by County",
    "SELECT avg(age) AS a, count(*) AS n, county AS c FROM t WHERE {} GROUP BY c",
    "SELECT avg(age) a, count(1) n, county c FROM t WHERE {} GROUP BY 3",
    "SELECT county, mean(age), count() FROM t WHERE {} GROUP BY county, county",
    (
        'SELECT "county", count(*), count(*) * 2 AS twice, avg("age") FROM t WHERE {} GROUP BY'
        ' "county"'
    ),
    "SELECT county, avg(age) / count(*) FROM t WHERE {} GROUP BY county",
    "SELECT county, count(*), avg(age) FROM t WHERE {} GROUP BY county HAVING count(*) > 10",
    "SELECT county, count(*) FROM t WHERE {} GROUP BY county ORDER BY avg(age) DESC LIMIT 5",
    (
        "SELECT county, count(*), avg(age)\n\tFROM t -- a comment\n WHERE {} /* another */ GROUP BY"
        " county;"
    ),
    (
        "SELECT people.county, count(*), avg((people.age)) FROM t AS people WHERE {} GROUP BY"
        " people.county"
    ),
]

SPELLINGS = sorted(
    {SELECTS[0].format(condition) for condition in CONDITIONS}
    | {select.format(condition) for select in SELECTS for condition in CONDITIONS[:3]}
)


def test_there_are_more_than_fifty_spellings() -> None:
    assert len(SPELLINGS) > 50


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_spelling_has_the_one_text(spelling: str) -> None:
    assert one_text(spelling) == one_text(SPELLINGS[0])
    assert query(spelling).aggregates == query(SPELLINGS[0]).aggregates


def test_python_has_the_one_text() -> None:
    asked = build(
        POLICY, SCHEMA, where=CONDITIONS[7], by="county", ask={"n": Count(), "a": Mean("age")}
    )
    assert canonical(asked) == one_text(SPELLINGS[0])


DIFFERENT = [
    "SELECT count(*) FROM t",
    "SELECT count(age) FROM t",
    "SELECT count(smoker) FROM t",
    "SELECT count_if(smoker) FROM t",
    "SELECT count(DISTINCT patient) FROM t",
    "SELECT count(*), sum(age) FROM t",
    "SELECT sum(age) FROM t",
    "SELECT avg(age) FROM t",
    "SELECT avg(smoker) FROM t",
    "SELECT variance(age) FROM t",
    "SELECT var_pop(age) FROM t",
    "SELECT median(age) FROM t",
    "SELECT quantile(age, 0.51) FROM t",
    "SELECT quantile(age, [0.5, 0.51]) FROM t",
    "SELECT min(age) FROM t",
    "SELECT max(age) FROM t",
    "SELECT sum(age + 1) FROM t",
    "SELECT sum(income) FROM t",
    "SELECT sum(coalesce(income, 0)) FROM t",
    "SELECT count(*) FROM t WHERE age > 65",
    "SELECT count(*) FROM t WHERE age >= 65",
    "SELECT count(*) FROM t WHERE age < 65",
    "SELECT count(*) FROM t WHERE age = 65",
    "SELECT count(*) FROM t WHERE age <> 65",
    "SELECT count(*) FROM t WHERE age IS NULL",
    "SELECT count(*) FROM t WHERE age IS NOT NULL",
    "SELECT count(*) FROM t WHERE name = 'a'",
    "SELECT count(*) FROM t WHERE name = 'A'",
    "SELECT count(*) FROM t WHERE name = ' a'",
    "SELECT count(*) FROM t WHERE name LIKE 'a'",
    "SELECT count(*) FROM t WHERE name NOT LIKE 'a'",
    "SELECT count(*) FROM t WHERE name IN ('a', 'b')",
    "SELECT count(*) FROM t WHERE name IN ('a, b')",
    "SELECT count(*) FROM t WHERE name = 'a'' OR name = ''b'",
    "SELECT count(*) FROM t WHERE smoker AND age > 1 OR age < 5",
    "SELECT count(*) FROM t WHERE smoker AND (age > 1 OR age < 5)",
    "SELECT count(*) FROM t WHERE age - 1 > band",
    "SELECT count(*) FROM t WHERE 1 - age > band",
    "SELECT count(*) FROM t WHERE age / 2 > band",
    "SELECT county, count(*) FROM t GROUP BY county",
    "SELECT sex, count(*) FROM t GROUP BY sex",
    "SELECT sex, county, count(*) FROM t GROUP BY sex, county",
    "SELECT band, count(*) FROM t GROUP BY band",
    "SELECT bin(band, 0, 18, 65), count(*) FROM t GROUP BY 1",
    "SELECT month(day), count(*) FROM t GROUP BY 1",
    "SELECT isodow(day), count(*) FROM t GROUP BY 1",
    "SELECT CASE WHEN smoker THEN 'a' ELSE 'b' END, count(*) FROM t GROUP BY 1",
    "SELECT CASE WHEN smoker THEN 'b' ELSE 'a' END, count(*) FROM t GROUP BY 1",
]


def test_different_questions_have_different_texts() -> None:
    texts = {one_text(text): text for text in DIFFERENT}
    assert len(texts) == len(DIFFERENT)
