import subprocess
import sys

import pytest

import discreet


def test_every_public_name_is_there():
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    assert set(discreet.__all__) <= set(dir(discreet))
    assert discreet.__version__.count(".") == 2


def test_an_unknown_name_says_so():
    with pytest.raises(AttributeError, match="no attribute 'gaussian'"):
        discreet.gaussian  # noqa: B018


def test_import_is_lazy():
    """`import discreet` loads neither numpy nor the ball arithmetic nor the ciphers."""
    code = "import sys, discreet; print([m for m in ('numpy', 'flint', 'cryptography', 'typer') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_there_is_no_seed_anywhere():
    import inspect

    for name in ("laplace_mechanism", "DiscreteLaplace", "Laplace"):
        thing = getattr(discreet, name)
        members = [thing, *(m for _, m in inspect.getmembers(thing, callable) if not _.startswith("__"))]
        for member in members:
            assert not {"seed", "rng", "random_state", "entropy"} & set(inspect.signature(member).parameters)
