"""The phrases that the rehearsal model knows, and the tool call that each becomes. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from ...model import Situation
from .open_plans import cancel, pending
from .reply import ABOUT, CALLS_MAX, RESEARCH, WHAT_MAX, Call, Reply, first_words

REMEMBERED_MAX: Final = 3
"""Memories that an answer tells."""

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
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600}


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


def _delay_s(match: re.Match[str]) -> float:
    number = 1.0 if match["n"][0] in "aAoO" else float(match["n"])
    delay_s = number * _UNIT_S[match["unit"][0].lower()]
    return int(delay_s) if delay_s.is_integer() else delay_s


class Phrase(NamedTuple):
    """A wish that can stand in a message, more than once and beside others."""

    words: tuple[str, ...]
    """One of them stands in a message that is looked through for it."""
    patterns: tuple[re.Pattern[str], ...]
    call: Callable[[re.Match[str]], Call]

    def take(self, text: str, calls: list[Call]) -> str:
        """Append a call for each match; return the text without them."""
        for pattern in self.patterns:
            found = list(pattern.finditer(text))[:CALLS_MAX]
            calls.extend(self.call(match) for match in found)
            text = pattern.sub(" ", text)
        return text


PHRASES: Final = (
    Phrase(("remind me",), _REMINDERS, _reminder),
    Phrase(("check back",), (_CHECK_BACK,), _check_back),
    Phrase(("remember", "my"), _REMEMBER, _remember),
    Phrase(("research", "look into", "in the background"), _RESEARCH, _research),
)
"""In this order, each from what the ones before it left over."""


def answer(text: str, situation: Situation) -> Reply:
    """Answer to a message of a person."""
    lowered = text.lower()
    calls: list[Call] = []
    for phrase in PHRASES:
        if any(word in lowered for word in phrase.words):
            text = phrase.take(text, calls)
    if _NEVER_MIND.search(text):
        cancelling, cancels = cancel(situation)
        if cancels or not calls:
            return cancelling, cancels + calls
    if calls:
        return "", calls
    if "pending" in lowered and _PENDING.search(text):
        return pending(situation), []
    if _ASKED.search(text):
        return _recall(text, situation)
    return f"{ABOUT} {_echo(text)}", []


def _recall(text: str, situation: Situation) -> Reply:
    """Tell what was recalled for this message, or search for it."""
    if not situation.memories:
        return "", [("memory_recall", {"query": text[:WHAT_MAX]})]
    lines = [first_words(hit.memory.content) for hit in situation.memories[:REMEMBERED_MAX]]
    return f"I remember: {'; '.join(lines)}", []


def _echo(text: str) -> str:
    words = first_words(text)
    return f'You said: "{words}"' if words else "You sent nothing that I can read."
