"""What a cycle or a run found, and what it found it in: only that is known (SPEC C-7, J-3). Pure.

A weak model reports that "this is a new day". What names nothing, or nothing that the session was
shown by a tool or by somebody whom it started, is no memory. What memory or the board answers is no
ground, nor is a branch of itself: its own words, of now or of before, come back from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from vigil.contracts import Row, TaskBlock, ToolResultBlock, ToolUseBlock
from vigil.memory.operation import tools
from vigil.words.function_words import DAYS_AND_MONTHS

from ..draft.kinds import starters
from ..pending.tasks import shortened
from ..tools.declaration import declared

LABEL_LENGTH_MAX: Final = 200

_WORD: Final = re.compile(r"[^\s,;:!?()\[\]{}<>\"“”„'’`]+(?:['’][^\W\d_]+)?")
_INSTANT: Final = re.compile(
    r"(?<![\w.:])(?:\d{4}-\d\d(?:-\d\d)?(?:T[\d:.+-]+Z?)?|\d\d?:\d\d(?::\d\d)?Z?)(?![\w:])"
)
_UNCASED: Final = re.compile(r"[^\W\d_]{4,}")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_CALENDAR: Final = DAYS_AND_MONTHS | {"utc"}
"""Stand in every result that has a date, and name nothing."""


def names(text: str) -> frozenset[str]:
    """Return what a text names: numbers, codes, addresses, and words with a capital that begin no
    sentence.

    >>> sorted(names("Build 4711 of CI failed for Marigold on Monday"))
    ['4711', 'CI', 'Marigold']
    >>> names("This is a new day, and I'm ready for it.")
    frozenset()
    """
    found: set[str] = set()
    for sentence in _SENTENCE.split(_INSTANT.sub(" ", text)):
        for at, word in enumerate(_words(sentence)):
            if _is_name(word, is_first=at == 0):
                found.add(word)
    for run in _UNCASED.findall(text):
        if run.lower() == run.upper():  # of a script without capitals, which may have no spaces
            found |= {run[at : at + 4] for at in range(len(run) - 3)}
    return frozenset(found)


def _words(sentence: str) -> list[str]:
    words = (found.rstrip(".-/*_").lstrip("-*_") for found in _WORD.findall(sentence))
    return [re.sub(r"['’]s$", "", word) for word in words if word]


def _is_name(word: str, *, is_first: bool) -> bool:
    if len(word) < 2 or word.lower() in _CALENDAR:
        return False
    if re.match(r"I['’]", word):
        return False
    if any(char.isdigit() for char in word) or re.search(r"\w[@/._]\w", word):
        return True
    if any(char.isupper() for char in word[1:]):
        return True
    return word[0].isupper() and not is_first


def shown(rows: Iterable[Row]) -> Mapping[str, str]:
    """Return what a session was shown, by the tool that showed it and the page that it named."""
    own = {*tools(), *declared(), *(name for name, one in starters().items() if one.is_heir)}
    called: dict[str, str] = {}
    texts: dict[str, list[str]] = {}
    for row in rows:
        for block in row.blocks:
            if isinstance(block, ToolUseBlock) and block.name not in own:
                called[block.id] = _label(block)
            elif isinstance(block, ToolResultBlock) and not block.is_error:
                tool = called.get(block.tool_use_id, "")
                if tool:
                    texts.setdefault(tool, []).append(block.content)
            elif isinstance(block, TaskBlock) and not block.is_error:
                texts.setdefault(block.tool, []).append(block.content)
    return {tool: "\n".join(of) for tool, of in texts.items()}


def _label(use: ToolUseBlock) -> str:
    """Return what a call is called as a ground: a page without what may be secret in its address.

    >>> _label(ToolUseBlock(id="1", name="get", input={"url": "https://ann:x@ci.example/b?key=1"}))
    'get https://ci.example/b'
    """
    given = use.input.get("url")
    try:
        parts = urlsplit(given) if isinstance(given, str) else None
        host = "" if parts is None else parts.hostname or ""
    except ValueError:
        return use.name
    if parts is None or parts.scheme not in ("http", "https") or not host:
        return use.name
    return shortened(f"{use.name} {parts.scheme}://{host}{parts.path}", LABEL_LENGTH_MAX)


def found_in(point: str, material: Mapping[str, str]) -> tuple[str, ...]:
    """Return the tools that showed something which a point names; none: it has no ground."""
    said = names(point)
    named = [re.compile(rf"(?<!\w){re.escape(one)}(?!\w)") for one in said if _cased(one)]
    parts = [one for one in said if not _cased(one)]
    return tuple(
        tool
        for tool, text in material.items()
        if any(one.search(text) for one in named) or any(one in text for one in parts)
    )


def _cased(name: str) -> bool:
    return name.lower() != name.upper() or not name.isalpha()


def grounded(points: Iterable[str], material: Mapping[str, str]) -> tuple[str, ...]:
    """Return the points that have a ground, each with it.

    >>> grounded(["Build 4711 failed", "All is well"], {"ci__list": "build 4711: failed"})
    ('Build 4711 failed (from ci__list)',)
    """
    found = ((point, found_in(point, material)) for point in points)
    return tuple(f"{point} (from {', '.join(tools_)})" for point, tools_ in found if tools_)
