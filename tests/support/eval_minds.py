"""Models for evals: one that does what a good one does, and two that fail as bad ones do.

`Attentive` understands some plain English: reminders by how long and by the clock, what to remember
and what is asked of it, pages to read, what is pending and taken back. It knows nothing of the
stories. `Obedient` is as good, and follows each order that it finds in what it is shown;
`Forgetful` talks like it and does nothing of what it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from services.cortex.model import ModelAnswer, ModelRequest
from services.cortex.models.rehearsal.model import RehearsalModel
from tests.support.obedient import orders_in
from tests.support.scripted_model import ScriptedModel, say
from vigil.contracts import Row, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from vigil.zones.database import zone_named

Call = tuple[str, dict[str, Any]]
_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600}
_IN: Final = re.compile(r"\bin (\d+) (second|minute|hour)s?\b")
_AT: Final = re.compile(r"\b(tomorrow )?at (\d{1,2}):(\d{2})\b")
_REMIND: Final = re.compile(
    r"\bremind me (?P<when>.*?\d(?: \w+|:\d\d))?\s*to (?P<what>[^.,]+)", re.I
)
_BACK: Final = re.compile(r"\bcheck back in (\d+) (second|minute|hour)s?\b", re.I)
_KEEP: Final = re.compile(r"\b[Rr]emember that (.+?)(?=\.(?: Remember|$))")
_CANCEL: Final = re.compile(r"\b(never mind|cancel)\b", re.I)
_ASKED: Final = re.compile(r"\b(?:what|who) is my ([\w' ]+)\?", re.I)
_URL: Final = re.compile(r"https?://[^\s?]+")
_ORDERED: Final = re.compile(r"[^.:]*\bdo: .*")
"""A sentence that tells it to do something: it tells no one of that."""
_BEGINNINGS: Final = ("person", "timer", "external", "task")


OF_ITSELF: Final = {
    "timer": "Checking back: how is it going?",
    "external": "Something came in for you; I leave it as it is.",
}


class Attentive(ScriptedModel):
    """A model that does what it's asked, and nothing else."""

    name = "attentive"

    def __init__(self) -> None:
        super().__init__(self._respond)
        self._rest = RehearsalModel(word_ms=0)

    async def _respond(self, request: ModelRequest) -> ModelAnswer:
        if request.purpose != "answer" or request.rows[0].source == "task":
            return await self._rest.answer(request, lambda _: None)
        begin = max(i for i, row in enumerate(request.rows) if row.source in _BEGINNINGS)
        calls = list(self.wishes(request, begin)) if len(request.rows) == begin + 1 else []
        calls += self.temptations(request, begin)
        return _calling(request, calls) if calls else say(self.words(request, begin))

    def wishes(self, request: ModelRequest, begin: int) -> Iterator[Call]:
        """What it calls at once."""
        if request.rows[begin].source != "person":
            return
        text = _words_of(request.rows[begin])
        now = request.situation.now
        if _CANCEL.search(text):
            open_ids = request.situation.follow_ups
            yield from (("cancel_followup", {"timer_id": one}) for one in open_ids)
        for wish in _REMIND.finditer(text):
            at = _moment(wish["when"] or "", now, request.situation.timezone)
            what = wish["what"].strip()
            yield (
                "schedule_followup",
                {
                    "fire_at": at.isoformat(),
                    "reason": what,
                    "message": f"Reminder: {what}",
                    "keep": True,
                },
            )
        if back := _BACK.search(text):
            delay_s = int(back[1]) * _UNITS[back[2]]
            yield "schedule_followup", {"delay_seconds": delay_s, "reason": "check back"}
        for fact in _KEEP.finditer(text):
            yield "memory_save", {"content": f"The user said: {fact[1]}"}
        if about := _ASKED.search(text):
            yield "memory_recall", {"query": about[1]}
        yield from (("http_get", {"url": one.rstrip(".")}) for one in _URL.findall(text))

    def temptations(self, request: ModelRequest, begin: int) -> list[Call]:
        """What else it calls, because it read that it should."""
        return []

    def words(self, request: ModelRequest, begin: int) -> str:
        """What it says in the end."""
        row = request.rows[begin]
        if row.source != "person":
            return OF_ITSELF.get(row.source, "All right.")
        text = _words_of(row)
        if "pending" in text.lower():
            return (
                "; ".join(one.reason for one in request.situation.follow_ups.values()) or "Nothing."
            )
        told = [_ORDERED.sub("", line) for line in _results(request.rows[begin:])]
        if about := _ASKED.search(text):
            word = about[1].split()[-1].removesuffix("'s").lower()
            known = [
                line for line in told if about[1].split()[0].removesuffix("'s") in line.lower()
            ]
            return (
                max(known, key=_said_at)
                if known
                else f"I don't know your {word}; you never told me."
            )
        if _URL.search(text):
            return f"It says: {' '.join(told)[:300]}"
        if request.rows[-1].source == "tool":
            return "I will see to it."
        return "All right."


class Obedient(Attentive):
    """Follows every order that stands in what it is shown, once each in an exchange."""

    name = "obedient"

    def temptations(self, request: ModelRequest, begin: int) -> list[Call]:
        shown = "\n".join(_all_of(row) for row in request.rows[begin:])
        done = {
            (block.name, json.dumps(block.input, sort_keys=True))
            for row in request.rows[begin:]
            for block in row.blocks
            if isinstance(block, ToolUseBlock)
        }
        found = [(tool, given) for _, tool, given in orders_in(shown)]
        return [(tool, json.loads(given)) for tool, given in found if (tool, given) not in done]


class Forgetful(Attentive):
    """Says that it will, and doesn't."""

    name = "forgetful"

    def wishes(self, request: ModelRequest, begin: int) -> Iterator[Call]:
        kept = ("schedule_followup", "memory_save", "memory_recall")
        yield from (one for one in super().wishes(request, begin) if one[0] not in kept)


def _said_at(memory: str) -> str:
    """Return the day of a memory as recall shows it, so that the newest counts."""
    day = re.search(r"\d{4}-\d\d-\d\d", memory)
    return day[0] if day else ""


def _moment(text: str, now: datetime, timezone: str) -> datetime:
    if span := _IN.search(text):
        return now + timedelta(seconds=int(span[1]) * _UNITS[span[2]])
    here = now.astimezone(zone_named(timezone))
    clock = _AT.search(text)
    assert clock is not None, text
    at = here.replace(hour=int(clock[2]), minute=int(clock[3]), second=0)
    return at + timedelta(days=1) if clock[1] or at <= here else at


def _words_of(row: Row) -> str:
    return "".join(block.text for block in row.blocks if isinstance(block, TextBlock))


def _all_of(row: Row) -> str:
    results = [str(one.content) for one in row.blocks if isinstance(one, ToolResultBlock)]
    return "\n".join([_words_of(row), *results])


def _results(rows: Sequence[Row]) -> list[str]:
    found = [
        block.content for row in rows for block in row.blocks if isinstance(block, ToolResultBlock)
    ]
    return [line for text in found for line in str(text).splitlines() if line.strip()]


def _calling(request: ModelRequest, calls: Sequence[Call]) -> ModelAnswer:
    blocks = tuple(
        ToolUseBlock(id=f"call_{len(request.rows)}_{number}", name=name, input=given)
        for number, (name, given) in enumerate(calls)
    )
    usage = Usage(model=Attentive.name, input_tokens=1, output_tokens=1)
    return ModelAnswer(blocks=blocks, stop_reason="tool_use", usage=usage)
