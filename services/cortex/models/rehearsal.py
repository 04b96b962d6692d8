"""The rehearsal model: a deterministic stand-in, so that every loop can be seen working.

It runs without a key and says what it is. It understands a handful of phrases and answers them
with real tool calls, and it goes on from the tools' real results. It reads no clock and rolls
no dice: the same rows and situation give the same answer.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from vigil.contracts import Block, Row, TextBlock, ToolResultBlock, ToolUseBlock, Usage

from ..core.external import HELD_REASON
from ..core.work.detached import HELD_REASON as RESULTS_HELD
from ..thought.model import ModelAnswer, ModelRequest, Situation
from .rehearsal_plans import plan
from .rehearsal_reflection import memories, summary

READ_MAX: Final = 4000
"""Characters of a message that are looked at."""
WHAT_MAX: Final = 500
SAID_MAX: Final = 1000
"""Characters of what memory found that an answer tells."""
CALLS_MAX: Final = 20
"""Tool calls in one answer; more follow in the next."""
LISTED_MAX: Final = 20
REMEMBERED_MAX: Final = 3
"""Memories that an answer tells."""
CHECK_BACK: Final = "Checking back, as I said I would. How is it going?"
ABOUT: Final = (
    "I am the rehearsal model, a stand-in until a real model is configured; I only know a few "
    'phrases. Try "remind me in 20 seconds to stretch", "check back in 30 seconds", '
    '"what is pending", "never mind", "remember that my locker code is 4711" or, in any other '
    'conversation, "what is my locker code?", and "research my locker code in the background".'
)
NOTHING_OPEN: Final = (
    "Nothing was open. What I had planned on my own ends as soon as you write; only reminders stay."
)
CANCELLING: Final = "Cancelling: "
RESEARCH: Final = "Research: "
TASK: Final = "[Task]"
"""How the prompt of a task begins."""

_IN: Final = (
    r"in\s+(?P<n>\d{1,9}(?:\.\d{1,3})?|an?|one)\s*"
    r"(?P<unit>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)\b"
)
_CHARACTER: Final = r"(?:(?!\.(?:\s|$))[^\n!?;])"
"""One of a sentence: a full stop ends it only before a blank."""
_REMINDERS: Final = (
    re.compile(rf"\bremind me\s+{_IN}(?:\s+(?:to|that|about)\s+(?P<what>{_CHARACTER}+))?", re.I),
    re.compile(
        rf"\bremind me\s+(?:to|that|about)\s+(?P<what>{_CHARACTER}{{1,{WHAT_MAX}}}?)\s+{_IN}",
        re.I,
    ),
)
_CHECK_BACK: Final = re.compile(rf"\bcheck back(?:\s+(?:with|on)\s+me)?\s+{_IN}", re.I)
_NEVER_MIND: Final = re.compile(
    r"\bnever\s?mind\b|(?<!don't )(?<!not )(?<!never )\bforget it\b", re.I
)
_PENDING: Final = re.compile(r"\bwhat(?:'s|s| is)(?: still)? pending\b", re.I)
_REMEMBER: Final = (
    re.compile(
        rf"(?<!you )\bremember(?:\s*:|\s+that\b)\s*+(?P<what>(?=\S){_CHARACTER}++)(?!\?)", re.I
    ),
    re.compile(
        rf"(?:^|[.!;\n])\s*(?P<what>my\s[^.!?;\n]{{1,60}}?\s(?:is|are)\s{_CHARACTER}++)(?!\?)", re.I
    ),
)
_RESEARCH: Final = (
    re.compile(rf"\b(?:research|look into)\s+(?P<what>(?=\S){_CHARACTER}++)", re.I),
    re.compile(rf"\bin the background[,:]?\s+(?P<what>(?=\S){_CHARACTER}++)", re.I),
)
_ASKED: Final = re.compile(
    r"\b(?:what|who|where|when)(?:'s|\s+is|\s+are|\s+was|\s+were)\s+my\b"
    r"|\bdo you (?:remember|know)\b|\bwhat (?:do|did) (?:you (?:know|remember)|i tell you)\b",
    re.I,
)
_SOURCE: Final = re.compile(r"^\[Outside event\] From (\S+),")
_KIND: Final = re.compile(r"^\| type: (.*)$", re.M)
_CONTENT: Final = re.compile(r"^\| ?(.*)$", re.M)
_WORDS: Final = re.compile(r"\S+\s*")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600}


class RehearsalModel:
    """Answers a few phrases, word by word."""

    name: Final = "rehearsal"
    is_free: Final = True
    server: Final = None

    def __init__(self, *, word_ms: int) -> None:
        """`word_ms`: how long a word takes; 0 hands over the whole text at once."""
        self._word_s = word_ms / 1000

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        """Answer; never raises ModelError."""
        text, calls = ROLES.get(request.purpose, _reply)(request)
        if self._word_s and text and request.schema is None:
            await self._stream(text, on_text)
        elif text:
            on_text(text)
        blocks: tuple[Block, ...] = (TextBlock(text=text),) if text else ()
        return ModelAnswer(
            blocks=(*blocks, *_numbered(calls, request)) if calls else blocks,
            stop_reason="tool_use" if calls else "end_turn",
            usage=_usage(request, text),
        )

    async def _stream(self, text: str, on_text: Callable[[str], None]) -> None:
        for index, word in enumerate(_WORDS.findall(text)):
            if index:
                await asyncio.sleep(self._word_s)
            on_text(word)

    async def close(self) -> None:
        """Nothing is open."""


Call = tuple[str, dict[str, Any]]
"""A tool's name and its input."""
Reply = tuple[str, list[Call]]
"""What is said, and which tools are called."""


def _reply(request: ModelRequest) -> Reply:
    return reply(request.rows, request.situation)


def _plan(request: ModelRequest) -> Reply:
    return plan(_text(request.rows[0])), []


def _save(request: ModelRequest) -> Reply:
    return "", memories(_text(request.rows[-1]))


def _compact(request: ModelRequest) -> Reply:
    text = _text(request.rows[-1])
    return summary(text), memories(text)


ROLES: Final[dict[str, Callable[[ModelRequest], Reply]]] = {
    "plan": _plan,
    "save": _save,
    "compact": _compact,
}
"""What is answered to a question that is no step of a loop, by its purpose."""


def reply(rows: Sequence[Row], situation: Situation) -> Reply:
    """Decide what to answer to the last row."""
    if not rows:
        return ABOUT, []
    last = rows[-1]
    if any(isinstance(block, ToolResultBlock) for block in last.blocks):
        return _go_on(rows, situation)
    if last.source == "external":
        return _event(_text(last)), []
    if last.source == "timer":
        return _due(rows), []
    if last.source == "task":
        return _task(_text(last))
    return _answer(_text(last)[:READ_MAX].replace("’", "'"), situation)


def _text(row: Row) -> str:
    return " ".join([b.text for b in row.blocks if isinstance(b, TextBlock)])


def _answer(text: str, situation: Situation) -> Reply:
    lowered = text.lower()
    calls: list[Call] = []
    if "remind me" in lowered:
        text = _take(_REMINDERS, text, _reminder, calls)
    if "check back" in lowered:
        text = _take((_CHECK_BACK,), text, _check_back, calls)
    if "remember" in lowered or "my" in lowered:
        text = _take(_REMEMBER, text, _remember, calls)
    if any(word in lowered for word in ("research", "look into", "in the background")):
        text = _take(_RESEARCH, text, _research, calls)
    if _NEVER_MIND.search(text):
        cancelling, cancels = _cancel(situation)
        if cancels or not calls:
            return cancelling, cancels + calls
    if calls:
        return "", calls
    if "pending" in lowered and _PENDING.search(text):
        return _pending(situation), []
    if _ASKED.search(text):
        return _recall(text, situation)
    return f"{ABOUT} {_echo(text)}", []


def _take(
    patterns: Sequence[re.Pattern[str]],
    text: str,
    make: Callable[[re.Match[str]], Call],
    calls: list[Call],
) -> str:
    """Append a call for each match; return the text without them."""
    for pattern in patterns:
        found = list(pattern.finditer(text))[:CALLS_MAX]
        calls.extend(make(match) for match in found)
        text = pattern.sub(" ", text)
    return text


def _reminder(match: re.Match[str]) -> Call:
    what = " ".join((match["what"] or "")[:WHAT_MAX].split())
    return "schedule_followup", {
        "delay_seconds": _delay_s(match),
        "reason": f"reminder: {what}" if what else "reminder",
        "message": f"Reminder: {what}" if what else "Reminder: the time you asked for is up.",
        "keep": True,
    }


def _check_back(match: re.Match[str]) -> Call:
    return "schedule_followup", {"delay_seconds": _delay_s(match), "reason": "check back"}


def _remember(match: re.Match[str]) -> Call:
    what = " ".join(match["what"][:WHAT_MAX].split())
    return "memory_save", {"content": what}


def _research(match: re.Match[str]) -> Call:
    what = " ".join(match["what"][:WHAT_MAX].split()).removesuffix(" in the background")
    return "spawn_worker", {"task": f"{RESEARCH}{what}"}


def _recall(text: str, situation: Situation) -> Reply:
    """Tell what was recalled for this message, or search for it."""
    if not situation.memories:
        return "", [("memory_recall", {"query": text[:WHAT_MAX]})]
    told = [_first_words(memory.content) for memory in situation.memories[:REMEMBERED_MAX]]
    return f"I remember: {'; '.join(told)}", []


def _cancel(situation: Situation) -> Reply:
    ids = _ordered(situation)[:CALLS_MAX]
    if not ids:
        return NOTHING_OPEN, []
    reasons = ", ".join(_label(situation, timer_id) for timer_id in ids)
    return CANCELLING + reasons, [("cancel_followup", {"timer_id": i}) for i in ids]


def _delay_s(match: re.Match[str]) -> float:
    number = 1.0 if match["n"][0] in "aAoO" else float(match["n"])
    delay_s = number * _UNIT_S[match["unit"][0].lower()]
    return int(delay_s) if delay_s.is_integer() else delay_s


def _echo(text: str) -> str:
    words = _first_words(text)
    return f'You said: "{words}"' if words else "You sent nothing that I can read."


def _first_words(text: str) -> str:
    words = " ".join(text[:400].split())
    return f"{words[:79]}…" if len(words) > 80 else words


# ---------------------------------------------------------------- from outside


def _event(text: str) -> str:
    """Tell of an event, from the words of its prompt."""
    source, kind = _SOURCE.search(text), _KIND.search(text)
    content = "\n".join(_CONTENT.findall(text.partition("\n|\n")[2]))
    return (
        f"An event came in: {kind[1] if kind else 'something'} from "
        f"{source[1] if source else 'outside'}: {_first_words(content) or 'no content'}"
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
    if RESULTS_HELD in _text(rows[-1]):
        texts = [_text(row) for row in rows if row.source == "task"]
        return _task(texts[-1])[0] if texts else CHECK_BACK
    if HELD_REASON not in _text(rows[-1]):
        return CHECK_BACK
    told: list[str] = []
    for row in reversed(rows[:-1]):
        if row.source != "external" or len(told) == LISTED_MAX:
            break
        told.append(_event(_text(row)))
    return "\n".join(reversed(told)) or CHECK_BACK


# ---------------------------------------------------------------- after the tools


def _go_on(rows: Sequence[Row], situation: Situation) -> Reply:
    """Say what the tools did, from their results."""
    results: dict[str, ToolResultBlock] = {}
    index = len(rows)
    while index and rows[index - 1].role == "user":
        index -= 1
        results |= {b.tool_use_id: b for b in rows[index].blocks if isinstance(b, ToolResultBlock)}
    calls = [b for b in rows[index - 1].blocks if isinstance(b, ToolUseBlock)] if index else []
    done = [call for call in calls if call.id in results and not results[call.id].is_error]
    cancelled = [call for call in done if call.name == "cancel_followup"]
    if len(cancelled) == CALLS_MAX and situation.follow_ups:
        return _cancel(situation)
    parts = [_cancelled(rows)] if cancelled else []
    parts += [_scheduled(call.input) for call in done if call.name == "schedule_followup"]
    parts += [_saved(call.input) for call in done if call.name == "memory_save"]
    parts += [_found(results[call.id]) for call in done if call.name == "memory_recall"]
    parts += [_started(call.input) for call in done if call.name == "spawn_worker"]
    parts += [f"That did not work: {r.content[:300]}" for r in results.values() if r.is_error]
    return " ".join(parts) or ABOUT, []


def _scheduled(arguments: dict[str, Any]) -> str:
    when = f"in {_duration(arguments.get('delay_seconds', 0))}"
    if not arguments.get("keep"):
        return f"I'll check back {when}."
    what = str(arguments.get("reason", "")).removeprefix("reminder").removeprefix(": ")
    return f"I'll remind you {when} to {what}." if what else f"I'll remind you {when}."


def _saved(arguments: dict[str, Any]) -> str:
    return f"I'll remember that {str(arguments.get('content', '')).rstrip('.')}."


def _started(arguments: dict[str, Any]) -> str:
    what = str(arguments.get("task", "")).removeprefix(RESEARCH)
    return f"A worker is looking into {what}. I'll tell you what comes of it."


def _found(result: ToolResultBlock) -> str:
    return f"My memory says: {' '.join(result.content[:SAID_MAX].split())}"


def _cancelled(rows: Sequence[Row]) -> str:
    """Name all that this exchange cancelled, as announced with the calls."""
    announced: list[str] = []
    for row in reversed(rows):
        if row.role == "user" and row.source != "tool":
            break
        announced += [
            b.text.removeprefix(CANCELLING)
            for b in row.blocks
            if isinstance(b, TextBlock) and b.text.startswith(CANCELLING)
        ]
    return f"Cancelled: {', '.join(reversed(announced))}."


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"{seconds:g} seconds"


# ---------------------------------------------------------------- what is open


def _ordered(situation: Situation) -> list[str]:
    follow_ups = situation.follow_ups
    return sorted(follow_ups, key=lambda timer_id: (follow_ups[timer_id].fire_at, timer_id))


def _label(situation: Situation, timer_id: str) -> str:
    reason = " ".join(situation.follow_ups[timer_id].reason.split())
    return reason[:100] or timer_id


def _pending(situation: Situation) -> str:
    ids = _ordered(situation)
    if not ids:
        return "Nothing is pending."
    zone = ZoneInfo(situation.timezone)
    lines = [
        f"- {_label(situation, i)} ({i}): {_when(situation.follow_ups[i].fire_at, zone)}"
        for i in ids[:LISTED_MAX]
    ]
    if len(ids) > LISTED_MAX:
        lines.append(f"- and {len(ids) - LISTED_MAX} more")
    return "\n".join([f"Pending (times in {situation.timezone}):", *lines])


def _when(at: datetime, zone: ZoneInfo) -> str:
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")


# ---------------------------------------------------------------- bookkeeping


def _numbered(calls: list[Call], request: ModelRequest) -> list[ToolUseBlock]:
    """Give each call an id that the session has not seen: it derives from the last row."""
    seed = hashlib.sha256(request.session_key.encode())
    seed.update(len(request.rows).to_bytes(4, "big"))
    seed.update(msgspec.json.encode(request.rows[-1:]))
    prefix = f"toolu_rehearsal_{seed.hexdigest()[:16]}"
    return [
        ToolUseBlock(id=f"{prefix}_{index}", name=name, input=arguments)
        for index, (name, arguments) in enumerate(calls)
    ]


def _usage(request: ModelRequest, text: str) -> Usage:
    """Count blanks: about one to a word."""
    words = 1
    for part in request.system:
        words += part.count(" ")
    for row in request.rows:
        for block in row.blocks:
            if isinstance(block, TextBlock):
                words += block.text.count(" ") + 1
    output = text.count(" ") + 1 if text else 0
    return Usage(model=RehearsalModel.name, input_tokens=words, output_tokens=output)
