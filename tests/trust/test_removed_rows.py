"""TRUST 52: nothing that is written depends on rows that were removed before: no dictionary,
metadata or size.
"""

import io
import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import DiscreetError, InvalidParameter, Policy, Study
from discreet.files.add_noise import add_noise
from discreet.files.batches import even, noisy_batches

CANARY = "canary"
KEYS = [f"block {at:03}" for at in range(200)]
EXACT = {"sensitivity": 1, "epsilon": 10**6}
"""A draw other than 0 has a probability below e^(−10⁶): two files differ only in what is not noise.
"""


def clean() -> pa.Table:
    """What is to be published, as if nothing had ever been removed."""
    return pa.table({"block": KEYS, "people": pa.array(range(len(KEYS)), pa.int64())})


def whole() -> pa.Table:
    """The same with rows between that are removed before publishing."""
    blocks = [block for at, key in enumerate(KEYS) for block in (key, f"{CANARY} {at}")]
    return pa.table(
        {"block": blocks, "people": pa.array([at // 2 for at in range(2 * len(KEYS))], pa.int64())}
    )


def written(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def of_pandas() -> bytes:
    frame = whole().to_pandas().astype({"block": "category"})
    sink = io.BytesIO()
    frame[~frame["block"].str.startswith(CANARY)].to_parquet(sink)
    return sink.getvalue()


def of_polars(kind, table: pa.Table | None = None) -> bytes:
    frame = pl.from_arrow(table or whole()).with_columns(pl.col("block").cast(kind))
    there = frame.filter(~pl.col("block").cast(pl.String).str.starts_with(CANARY))
    sink = io.BytesIO()
    there.write_parquet(sink, compression="uncompressed")
    return sink.getvalue()


def of_arrow() -> pa.Table:
    table = whole()
    there = pa.array([not block.as_py().startswith(CANARY) for block in table["block"]])
    return table.set_column(0, "block", table["block"].dictionary_encode()).filter(there)


def pieces() -> bytes:
    """Row groups as they are after rows were removed from each."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, clean().schema) as writer:
        for start, stop in ((0, 7), (7, 8), (8, 120), (120, 200)):
            writer.write_table(clean().slice(start, stop - start))
    return sink.getvalue()


LEFTOVERS = {
    "a dictionary of Arrow": lambda: written(of_arrow()),
    "a category of pandas": of_pandas,
    "an Enum of polars": lambda: of_polars(pl.Enum(whole()["block"].to_pylist())),
    "a Categorical of polars": lambda: of_polars(pl.Categorical),
    "metadata": lambda: written(clean().replace_schema_metadata({"removed": CANARY})),
    "metadata of a column": lambda: written(
        pa.Table.from_arrays(
            clean().columns,
            schema=pa.schema(
                [
                    pa.field("block", pa.string(), metadata={"removed": CANARY}),
                    ("people", pa.int64()),
                ]
            ),
        )
    ),
    "row groups": pieces,
    "other columns": lambda: written(clean().append_column("secret", [[CANARY] * len(KEYS)])),
}
WRITERS = {
    "noise to Parquet": lambda source, target: add_noise(
        source, target, columns=["people"], keep=["block"], **EXACT
    ),
    "noise to CSV": lambda source, target: add_noise(
        source, target.with_suffix(".csv"), columns=["people"], keep=["block"], **EXACT
    ),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("left", LEFTOVERS)
def test_a_file_is_the_same_whatever_was_removed(left, writer, tmp_path):
    plain = of_polars(pl.String, clean()) if "polars" in left else written(clean())
    source = LEFTOVERS[left]()
    assert CANARY.encode() in source or left not in (
        "a dictionary of Arrow",
        "a category of pandas",
        "metadata",
    )
    files = []
    for name, content in (("clean", plain), ("left", source)):
        (tmp_path / f"{name}.in.parquet").write_bytes(content)
        WRITERS[writer](tmp_path / f"{name}.in.parquet", tmp_path / f"{name}.parquet")
        [made] = [file for file in tmp_path.glob(f"{name}.*") if ".in." not in file.name]
        files.append(made.read_bytes())
    assert CANARY.encode() not in files[1]
    assert files[0] == files[1]


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 5_000), max_size=8), size=st.integers(1, 3_000))
def test_batches_come_out_even_however_the_source_was_cut(cuts, size):
    table = pa.table({"people": pa.array(np.arange(5_000))})
    edges = sorted({0, 5_000, *cuts})
    batches = [table.slice(start, stop - start).to_batches()[0] for start, stop in pairwise(edges)]
    found = list(even(iter(batches), size))
    assert [len(one) for one in found[:-1]] == [size] * (len(found) - 1)
    assert all(column.num_chunks == 1 for one in found for column in one.columns)
    assert pa.concat_tables(found).equals(table)


@pytest.mark.parametrize(
    "column",
    [
        lambda: pa.array(KEYS).dictionary_encode(),
        lambda: pa.DictionaryArray.from_arrays(pa.array(range(200), pa.int16()), [*KEYS, CANARY]),
        lambda: pa.array([*KEYS, CANARY]).slice(0, 200),
        lambda: pa.RunEndEncodedArray.from_arrays(range(1, 202), [*KEYS, CANARY]).slice(0, 200),
        lambda: pa.array([*KEYS, CANARY], mask=np.arange(201) == 200).slice(0, 200),
    ],
    ids=["dictionary", "a longer dictionary", "slice", "runs", "masked"],
)
def test_batches_in_memory_hold_their_rows_alone(column):
    batch = pa.record_batch({"block": column(), "people": pa.array(range(200))})
    [noisy] = noisy_batches([batch], columns=["people"], keep=["block"], scale=Fraction(1, 10**6))
    assert noisy["block"].to_pylist() == KEYS
    assert noisy.schema.field("block").type == pa.string()
    for buffer in noisy["block"].buffers():
        assert buffer is None or CANARY.encode() not in buffer.to_pybytes()


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.struct([("a", pa.string())])], ids=str)
def test_nested_keys_are_refused_before_anything_is_written(kind, tmp_path):
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"block": pa.nulls(3, kind), "people": [1, 2, 3]}), source)
    for write in WRITERS.values():
        with pytest.raises(InvalidParameter, match="keys must be single values"):
            write(source, tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == [source]


def test_an_answer_is_written_without_what_the_source_carried(tmp_path):
    """Table, record and file of an answer are made of declared keys: a category with other values
    is not in them.
    """
    frames = [
        of_arrow().replace_schema_metadata({"removed": CANARY}),
        pq.read_table(io.BytesIO(of_pandas())),
    ]
    columns = {"block": {"keys": KEYS[:3]}, "people": {"bounds": [0, 300]}}
    for at, table in enumerate(frames):
        study = Study(
            Policy(source=table, epsilon=10, columns=columns), ledger=tmp_path / f"{at}.ledger"
        )
        plan = study.sql(
            "SELECT block, count(*) AS n, avg(people) FROM data GROUP BY block", epsilon=1
        )
        answer = plan.release()
        made = [answer.save(tmp_path / f"{at}.{form}") for form in ("parquet", "csv", "json")]
        other = study.sql("SELECT block, sum(people) FROM data GROUP BY block", epsilon=1)
        made.append(other.release(to=tmp_path / f"{at}.file.parquet").path)
        made += tmp_path.glob("*.release.json")
        for file in made:
            assert CANARY.encode() not in file.read_bytes(), file.name
        assert not answer.to_arrow().schema.metadata
        assert not any(pa.types.is_dictionary(kind) for kind in answer.to_arrow().schema.types)
        assert answer.to_pandas()["block"].dtype.name != "category"


def test_a_line_that_is_no_number_is_quoted_nowhere(tmp_path):
    (tmp_path / "in.txt").write_text(f"1\n{CANARY}\n", "utf-8")
    (tmp_path / "in.parquet").write_text(CANARY, "utf-8")
    (tmp_path / "in.csv").write_text(f"block,people\nx,{CANARY}\n", "utf-8")
    terms = {"sensitivity": 1, "epsilon": 1}
    for name, more in (("in.txt", {}), ("in.parquet", {}), ("in.csv", {"columns": ["people"]})):
        with pytest.raises(DiscreetError) as caught:
            add_noise(tmp_path / name, tmp_path / "out.txt", **terms, **more)
        assert CANARY not in json.dumps(
            [str(caught.value), repr(caught.value.args), repr(caught.value.__context__)]
        )
    with pytest.raises(DiscreetError) as caught:
        add_noise(tmp_path / "in.parquet", tmp_path / "out.parquet", columns=["people"], **terms)
    assert CANARY not in repr([caught.value, caught.value.__context__])
