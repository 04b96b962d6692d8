"""The templates of the console's pages, as they are written."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Final

from services.gateway.console import appearance

FOLDER: Final = Path(appearance.__file__).parent / "templates"
AFTER_WORDS: Final = re.compile(r"(?!\s*(\{%[^%]*%\})+$).*\S.*[^+]%\}")
"""A line that has words, and ends with a tag: the end of the line is left out with that."""
WORDS: Final = re.compile(
    r"(?!\s*(\{%|\{#|</?(p|ul|ol|li|dl|dt|dd|form|div|h\d|table|thead|tbody|tr|td|th|section"
    r"|article|details|summary|fieldset|nav|pre|meter|option|input)\b|</(select|label|script)\b"
    r"|\{\{ parts\.)).+"
)
"""A line that goes on with words, and not with what stands for itself."""
COMMAND: Final = re.compile("<(code|pre)>vigil [a-z]")


def test_words_of_two_lines_are_no_single_one() -> None:
    """What a line begins with keeps its distance to a condition at the end of the one before."""
    joined = []
    for file in sorted(FOLDER.glob("*.html")):
        lines = file.read_text().splitlines()
        joined += [
            f"{file.name}:{number}"
            for number, (line, after) in enumerate(pairwise(lines), 1)
            if AFTER_WORDS.fullmatch(line) and WORDS.fullmatch(after)
        ]
    assert joined == []


def test_a_table_is_cards_on_a_phone() -> None:
    """It would have to be moved sideways. Each cell but those that speak for themselves is named
    there, since nothing stands above it any more."""
    tables = {
        file.name: re.findall(r"<table[^>]*>.*?</table>", file.read_text(), re.DOTALL)
        for file in FOLDER.glob("*.html")
    }
    found = [(name, table) for name, some in tables.items() for table in some]
    assert len(found) > 10
    narrow = [name for name, table in found if 'class="parts"' in table]
    assert narrow == ["call.html"]
    assert [
        name for name, table in found if not re.match('<table class="(stacked|parts)"', table)
    ] == []
    counts = re.compile(r'<td class="number"(?! data-is)>')
    nameless = [(name, counts.findall(table)) for name, table in found if name not in narrow]
    assert {name for name, some in nameless if some} <= {"cost.html", "health.html"}  # money, bytes


def test_a_command_is_for_whoever_runs_vigil() -> None:
    """People have a browser: a page names one only where nobody else can, and says so. But how one
    signs in, and where a letter is too long for a page."""
    own = {"signed_out.html", "browsers.html", "conversation.html"}
    told = {
        file.name: [line for line in file.read_text().splitlines() if COMMAND.search(line)]
        for file in sorted(FOLDER.glob("*.html"))
    }
    assert len([one for one in told.values() if one]) > len(own)
    wrong = [
        (name, line)
        for name, lines in told.items()
        for line in lines
        if name not in own and not re.search(r"[Ww]hoever runs Vigil.*<code>vigil ", line)
    ]
    assert wrong == []
