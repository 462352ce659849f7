"""The package itself: its names, its types, and what it loads."""

import runpy
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import discreet

CODE = Path(__file__).parents[1] / "typed" / "user_code.py"


def test_every_public_name_is_there():
    for name in dir(discreet):
        assert getattr(discreet, name) is not None
    assert set(discreet.__all__) <= set(dir(discreet))
    assert discreet.__version__.count(".") == 2


def test_an_unknown_name_says_so():
    with pytest.raises(AttributeError, match="no attribute 'gaussian'"):
        discreet.gaussian  # noqa: B018


def test_import_is_lazy():
    """`import discreet` loads neither numpy nor the ball arithmetic nor the ciphers."""
    code = (
        "import sys, discreet; print([m for m in ('numpy', 'flint', 'cryptography', 'typer') if m"
        " in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_there_is_no_seed_anywhere():
    import inspect

    for name in ("laplace_mechanism", "DiscreteLaplace", "Laplace"):
        thing = getattr(discreet, name)
        members = [
            thing,
            *(m for _, m in inspect.getmembers(thing, callable) if not _.startswith("__")),
        ]
        for member in members:
            assert not {"seed", "rng", "random_state", "entropy"} & set(
                inspect.signature(member).parameters
            )


def test_a_table_is_released_without_pandas(tmp_path):
    """It takes longer to import than a small table takes to release."""
    (tmp_path / "data.csv").write_text("ward,age\n" + "a,30\nb,40\n" * 20)
    code = """
import sys
from discreet import Policy, Study
columns = {"ward": {"keys": ["a", "b"]}, "age": {"bounds": (0, 120)}}
with Study(Policy(source="data.csv", epsilon=1, columns=columns), ledger="ledger") as study:
    answer = study.sql("SELECT ward, count(*), avg(age) FROM data GROUP BY ward", epsilon=1).release()
    answer.to_arrow()
    answer.save("answer.csv")
print([module for module in ("pandas", "scipy", "polars", "altair") if module in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "[]"


def test_typed_code_runs(tmp_path):
    """The code of a user whose types `make check` reads."""
    names = runpy.run_path(str(CODE))
    assert len(names["releases"]()) == 7
    frame = pd.DataFrame({"town": ["Ash", "Elm"] * 50, "age": range(100)})
    assert names["answers"](frame, tmp_path).columns == ["town", "n", "age"]
    assert len(names["policies"]()) == 2


def test_types_are_shipped():
    assert Path(discreet.__file__).with_name("py.typed").is_file()
