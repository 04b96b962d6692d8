"""What the rehearsal model answers in a loop, to whatever came last. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from vigil.contracts import Row, ToolResultBlock

from ...core.external import HELD_REASON
from ...core.work.detached import HELD_REASON as RESULTS_HELD
from ...model import Situation
from .phrases import answer
from .reply import ABOUT, LISTED_MAX, RESEARCH, SAID_MAX, WHAT_MAX, Reply, first_words, text_of
from .results import go_on

READ_MAX: Final = 4000
"""Characters of a message that are looked at."""
CHECK_BACK: Final = "Checking back, as I said I would. How is it going?"
TASK: Final = "[Task]"
"""How the prompt of a task begins."""
_SOURCE: Final = re.compile(r"^\[Outside event\] From (\S+),")
_KIND: Final = re.compile(r"^\| type: (.*)$", re.M)
_CONTENT: Final = re.compile(r"^\| ?(.*)$", re.M)


def reply(rows: Sequence[Row], situation: Situation) -> Reply:
    """Decide what to answer to the last row."""
    if not rows:
        return ABOUT, []
    last = rows[-1]
    if any(isinstance(block, ToolResultBlock) for block in last.blocks):
        return go_on(rows, situation)
    if last.source == "external":
        return _event(text_of(last)), []
    if last.source == "timer":
        return _due(rows), []
    if last.source == "task":
        return _task(text_of(last))
    return answer(text_of(last)[:READ_MAX].replace("’", "'"), situation)


def _event(text: str) -> str:
    """Tell of an event, from the words of its prompt."""
    source, kind = _SOURCE.search(text), _KIND.search(text)
    content = "\n".join(_CONTENT.findall(text.partition("\n|\n")[2]))
    return (
        f"An event came in: {kind[1] if kind else 'something'} from "
        f"{source[1] if source else 'outside'}: {first_words(content) or 'no content'}"
    )


def _task(text: str) -> Reply:
    """Do what a worker is told, which is to ask memory; or tell what came of it."""
    if not text.startswith(TASK):
        content = " ".join(_CONTENT.findall(text.partition("\n|\n")[2]))
        return f"Here is what came of it: {content.strip()[:SAID_MAX] or 'nothing'}", []
    task = " ".join(text.removeprefix(TASK).split()).removeprefix(RESEARCH)
    return "", [("memory_recall", {"query": task[:WHAT_MAX] or "anything"})]


def _due(rows: Sequence[Row]) -> str:
    """Answer to a follow-up: with the events that were held back, if it stands for those."""
    if RESULTS_HELD in text_of(rows[-1]):
        texts = [text_of(row) for row in rows if row.source == "task"]
        return _task(texts[-1])[0] if texts else CHECK_BACK
    if HELD_REASON not in text_of(rows[-1]):
        return CHECK_BACK
    lines: list[str] = []
    for row in reversed(rows[:-1]):
        if row.source != "external" or len(lines) == LISTED_MAX:
            break
        lines.append(_event(text_of(row)))
    return "\n".join(reversed(lines)) or CHECK_BACK
