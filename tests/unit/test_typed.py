"""The code of a user whose types `make check` reads also runs."""

import runpy
from pathlib import Path

import pandas as pd

import discreet

CODE = Path(__file__).parents[1] / "typed" / "user_code.py"


def test_typed_code_runs(tmp_path):
    names = runpy.run_path(str(CODE))
    assert len(names["releases"]()) == 7
    frame = pd.DataFrame({"town": ["Ash", "Elm"] * 50, "age": range(100)})
    assert names["answers"](frame, tmp_path).columns == ["town", "n", "age"]
    assert len(names["policies"]()) == 2


def test_types_are_shipped():
    assert Path(discreet.__file__).with_name("py.typed").is_file()
