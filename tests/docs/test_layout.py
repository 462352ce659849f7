"""Unit tests stand where the module stands that they test."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
OF_NO_MODULE = {
    "calibrate/test_only_here.py": (
        "scans all of the source for sensitivities that are computed elsewhere"
    ),
    "draw/test_proof.py": "the inequalities of draw/PROOF.md",
    "test_help.py": "what help() says of every public function",
    "test_public_names.py": "the package itself",
}


def test_every_unit_test_is_named_after_a_module_or_package_in_the_same_room():
    unit, source = ROOT / "tests" / "unit", ROOT / "src" / "discreet"
    astray = set()
    for test in unit.rglob("test_*.py"):
        path = test.relative_to(unit)
        module = source / path.with_name(path.name.removeprefix("test_"))
        if not module.is_file() and not module.with_suffix("").joinpath("__init__.py").is_file():
            astray.add(path.as_posix())
    assert astray == set(OF_NO_MODULE)
