"""The site of `make docs`: each page is led to, and there isn't more to read than there was.

The site itself is made, strictly, by `make docs`, which installs MkDocs for it alone.
"""

from __future__ import annotations

import re
from typing import Final

import pytest
import yaml

from tests.docs.site import ROOT, moved, pages

PROSE_MAX: Final = 29_700
"""Words of prose, of which there are to be no more than 30,000: lower it when you can."""
MADE: Final = ("pictures.md", "measured.md")
"""Pages that are lists: of pictures, and of numbers."""


def prose_of(text: str) -> int:
    """Return how many words somebody reads: no code, tables and addresses.

    >>> prose_of("# A list\\n\\n    code here\\n\\n| a table |\\n\\n* [two](x.md) and `three`")
    4
    """
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = (one for one in text.splitlines() if not one.startswith(("    ", "|", "\t")))
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(lines))
    return len(re.findall(r"[A-Za-z][\w'’-]*", re.sub(r"`[^`]*`", "", plain)))


def test_each_page_is_led_to_once() -> None:
    nav = yaml.safe_load(
        re.sub(r"!!python\S+ ", "", (ROOT / "docs" / "site.yml").read_text("utf-8"))
    )["nav"]
    found: list[str] = []

    def take(one: object) -> None:
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, dict):
            take(list(one.values()))
        elif isinstance(one, list):
            for each in one:
                take(each)

    take(nav)
    folders = tuple(one for one in found if one.endswith("/"))
    there = {path for path, _ in pages() if not path.startswith(folders)}
    assert sorted(found) == sorted([*there, *folders])


def test_there_is_no_more_to_read_than_there_was() -> None:
    files = [one for one in (ROOT / "docs").glob("*.md") if one.name not in MADE]
    words = {one.name: prose_of(one.read_text("utf-8")) for one in [*files, ROOT / "README.md"]}
    longest = sorted(words, key=lambda name: -words[name])[:5]
    assert sum(words.values()) <= PROSE_MAX, f"shorten one, as {', '.join(longest)}"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("README.md", "[a](docs/memory.md#x)", "[a](memory.md#x)"),
        ("docs/memory.md", "[a](../README.md), [b](#c)", "[a](index.md), [b](#c)"),
        ("docs/adr/0001-a-message-is-a-turn.md", "[a](../bus.md)", "[a](../bus.md)"),
        ("docs/bus.md", "[`t`](../Makefile), [all](adr/README.md)", "`t`, [all](adr/index.md)"),
        ("docs/bus.md", "[rules](../Makefile)", "rules (`Makefile`)"),
        ("docs/bus.md", "[lost](nowhere.md)", None),
        ("README.md", "[a [b]](docs/memory.md)", "[a [b]](memory.md)"),
        ("docs/bus.md", "```\n[a](../Makefile)\n```", None),
        ("docs/bus.md", "As:\n\n    [a](../Makefile)\n", None),
    ],
)
def test_links_lead_where_pages_are_in_the_site(path: str, text: str, expected: str | None) -> None:
    assert moved(text, path) == (text if expected is None else expected)
