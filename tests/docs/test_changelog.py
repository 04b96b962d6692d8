"""One version, and a changelog that fits it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import vigil

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def released() -> list[str]:
    """Return the versions that have a section, in the order of the page."""
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", CHANGELOG, re.MULTILINE)


def test_the_package_and_the_project_have_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert vigil.__version__ == project["version"]


def test_sections_are_in_order_and_have_a_date() -> None:
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert len(headings) == len(released()) + headings.count("[Unreleased]")
    assert headings.index("[Unreleased]") == 0 if "[Unreleased]" in headings else released()
    assert released() == sorted(released(), key=numbers, reverse=True)


def test_the_version_has_its_section_or_is_the_next_one() -> None:
    newest = next(iter(released()), "0.0.0")
    if vigil.__version__ != newest:
        assert "## [Unreleased]" in CHANGELOG
        assert numbers(vigil.__version__) > numbers(newest)
