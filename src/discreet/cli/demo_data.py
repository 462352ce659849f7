"""An invented study: 200,000 people in 3,143 counties, with age, income, and a diagnosis for each
of their visits.

It is the same in every run: uniform numbers come from splitmix64 of row numbers, which is not
random, and no privacy rests on it. County sizes fall off as real ones do, incomes are log-normal,
older people visit more often, and diagnoses depend on age.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

if TYPE_CHECKING:
    import pyarrow as pa

PEOPLE, COUNTIES = 200_000, 3_143
DIAGNOSES = ("injury", "infection", "asthma", "diabetes", "heart disease", "depression", "other")
MOST_VISITS = 4
BIRTH, LAST = 0, 100

STUDY = """\
# The public facts about the data, and the privacy budget. Nothing here is taken from the data.
source    = "visits.parquet"
unit      = "person"        # whom we protect: all visits of one person
max_rows  = 4               # most visits of one person to use
neighbors = "change-one"    # the number of people, 200,000, is public
epsilon   = "3"             # total for this data, forever

[columns]
county    = { keys = "counties.csv" }   # a public list: every county gets a row
diagnosis = { keys = "diagnoses.csv" }
age       = { bounds = [0, 100] }
income    = { bounds = [0, 200000] }
"""

_FIRST = (  # noqa: SIM905 - a list of words is easier to read as one text
    "Ash Barn Beck Birch Black Bram Bright Brook Burn Cal Carl Cedar Chester Clay Cold Cran Cross"
    " Dale Deer Dun Earl East Elm Fair Farn Fern Ford Fox Glen Gold Gran Green Hal Hart Haw Hazel"
    " High Hol Iron Kel Kings Lake Lang Lin Long Lyn Maple Mar Mead Mill Moor New North Oak Old"
    " Pine Ray Red Rich Rose Row Sand Shel Silver South Stan Stone Sun Thorn Up Wal West Wild Win"
    " Wood"
).split()
_LAST = (  # noqa: SIM905 - a list of words is easier to read as one text
    "bank beck borough bourne bridge brook burgh bury by cliff combe cote croft dale den don field"
    " fold ford gate grove ham haven hill holm hurst land lea leigh low mere mill minster mont moor"
    " mouth ness port ridge shaw side stead stoke stow thorpe ton view ville wick worth"
).split()


def county_names() -> list[str]:
    """3,143 distinct names, in no order."""
    names = [f"{first}{last}" for last in _LAST for first in _FIRST][:COUNTIES]
    return sorted(names, key=lambda name: crc32(name.encode()))


def visits() -> pa.Table:
    import numpy as np
    import pyarrow as pa

    person = np.arange(PEOPLE)
    weights = 1 / (np.arange(COUNTIES) + 12.0) ** 0.9
    edges = np.cumsum(weights) / weights.sum()
    county = np.minimum(np.searchsorted(edges, _uniform(person, 1)), COUNTIES - 1)
    age = np.floor(LAST * (0.6 * _uniform(person, 2) + 0.4 * _uniform(person, 3) ** 1.5) + BIRTH)
    normal = np.sqrt(-2 * np.log(_uniform(person, 4))) * np.cos(2 * np.pi * _uniform(person, 5))
    income = np.round(np.exp(10.4 + 0.55 * normal + 0.3 * np.sin(age / 32)), -1)
    counts = 1 + np.floor(MOST_VISITS * _uniform(person, 6) ** (3 - 2.2 * age / LAST)).astype(
        np.int64
    )
    row = np.repeat(person, counts)
    old = age[row] / LAST
    chances = np.stack(
        [
            0.35 - 0.2 * old,
            0.3 - 0.15 * old,
            0.12 + 0 * old,
            0.22 * old,
            0.3 * old**2,
            0.1 + 0 * old,
        ]
    )
    drawn = _uniform(np.arange(row.size), 7)
    diagnosis = (np.cumsum(chances, axis=0) < drawn).sum(axis=0)
    names, kinds = np.array(county_names()), np.array(DIAGNOSES)
    columns: dict[str, Any] = {
        "person": np.char.add("P", np.char.zfill(row.astype(str), 6)),
        "county": names[county][row],
        "age": age[row],
        "income": income[row],
        "diagnosis": kinds[diagnosis],
    }
    return pa.table(columns)


def write(table: pa.Table, folder: Path) -> Path:
    """Write the data, the public lists and the policy into a folder, and return the path of the
    policy.
    """
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, folder / "visits.parquet")
    counties, diagnoses = ["county", *county_names(), ""], ["diagnosis", *DIAGNOSES, ""]
    texts = {
        "counties.csv": "\n".join(counties),
        "diagnoses.csv": "\n".join(diagnoses),
        "study.toml": STUDY,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "study.toml"


def _uniform(rows: Any, stream: int) -> Any:
    """A number in (0, 1) for each row, by splitmix64 of its number."""
    import numpy as np

    with np.errstate(over="ignore"):
        z = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(
            stream << 40
        )
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        z = z ^ (z >> np.uint64(31))
    return (z.astype(np.float64) + 0.5) / 2.0**64
