"""What a wheel of tinytf holds: all that it needs to run, and nothing large by accident."""

import tomllib
from pathlib import Path

import pytest

setuptools = pytest.importorskip("setuptools")

ROOT = Path(__file__).parents[1]
TOOL = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]


@pytest.fixture(scope="module")
def held():
    """{name: bytes} of the package's files that its wheel takes, by what pyproject.toml says."""
    packages = setuptools.find_packages(str(ROOT), include=["tinytf", "tinytf.*"])
    paths = {path for name in packages for path in ROOT.joinpath(*name.split(".")).glob("*.py")}
    for package, patterns in TOOL["package-data"].items():
        paths |= {path for pattern in patterns for path in (ROOT / package).glob(pattern)}
    paths = {path for path in paths if path.is_file()}
    return {path.relative_to(ROOT).as_posix(): path.stat().st_size for path in paths}


def test_everything_in_the_package_is_in_the_wheel(held):
    there = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tinytf").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert there == held.keys()


def test_what_it_can_t_run_without_is_there(held):
    assert {"tinytf/py.typed",
            "tinytf/viz/explorer.js", "tinytf/viz/explorer.css", "tinytf/viz/explorer.html",
            "tinytf/viz/fonts/tinytf-han.otf", "tinytf/viz/fonts/OFL.txt",
            "tinytf/weights/translator.safetensors",
            "tinytf/weights/writer.safetensors"} <= held.keys()  # fmt: skip


def test_nothing_is_large_by_accident(held):
    weights = {name for name in held if name.startswith("tinytf/weights/")}
    large = {name: size for name, size in held.items() if size > 200_000 and name not in weights}
    assert not large
    assert sum(held.values()) < 15_000_000
    assert held["tinytf/viz/fonts/tinytf-han.otf"] < 400_000
