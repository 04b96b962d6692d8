"""How the rehearsal model sums up and looks back: by rules, from a transcript. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from vigil.texts.bars import BAR

from ...prompt_marks import EARLIER, MEMBER, OFFERED, PERSON
from .reply import Call

SAVED_MAX: Final = 20
SENTENCE_MAX: Final = 400
LINE_MAX: Final = 200
SUMMARY_MAX: Final = 4000
NOTHING: Final = "Nothing that I could keep was said."

_HEADING: Final = re.compile(r"^\[[^\]\n]*\] (?P<who>.*)$")
_SENTENCE: Final = re.compile(r"[^.!?;\n]+(?:\.(?=\S)[^.!?;\n]*)*(?P<end>[.!?;\n]|$)")
_STATES: Final = re.compile(
    r"^(?:and |but |so |well,? )?(?:"
    r"my\s.{1,80}\s(?:is|are|was|were)\s\S|i\s+\S+\s+\S|i'(?:m|ve|d|ll)\s+\S)",
    re.I,
)
_ASKS: Final = re.compile(r"^i(?:'d like| want| need) (?:you )?to (?:know|ask)\b", re.I)


def memories(text: str) -> list[Call]:
    """Return what of a transcript is to be saved."""
    return _saves(list(_pieces(text.rpartition(f"\n{OFFERED}\n")[2])))


def summary(text: str) -> str:
    """Return the summary of a transcript."""
    return _summary(list(_pieces(text)))


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Split a transcript -> (who or what, the words behind the bars)."""
    who, words = "", [""]
    for part in text.split("\n"):
        if part.startswith(BAR):
            words.append(part.removeprefix(BAR))
        elif part == EARLIER or _HEADING.match(part):
            yield who, "\n".join(words).strip()
            who, words = _HEADING.sub(r"\g<who>", part) if part != EARLIER else EARLIER, []
    yield who, "\n".join(words).strip()


def _saves(pieces: list[tuple[str, str]]) -> list[Call]:
    """Save what the person told in the first person, unless it was saved when it was said."""
    saved = " ".join(_saved_already(words) for who, words in pieces if "memory_save" in who)
    statements = dict.fromkeys(
        sentence
        for who, words in pieces
        if _is_person(who)
        for sentence in _statements(words)
        if sentence.lower() not in saved
    )
    return [
        ("memory_save", {"content": f"The person said: {sentence}."})
        for sentence in list(statements)[-SAVED_MAX:]
    ]


def _saved_already(words: str) -> str:
    try:
        return str(json.loads(words).get("content", "")).lower()
    except (ValueError, AttributeError):
        return words.lower()


def _statements(words: str) -> Iterator[str]:
    for match in _SENTENCE.finditer(words.replace("’", "'")):
        sentence = " ".join(match[0].split()).rstrip(".!?; ")
        is_statement = match["end"] != "?" and _STATES.match(sentence) and not _ASKS.match(sentence)
        if is_statement and len(sentence) <= SENTENCE_MAX:
            yield sentence


def _summary(pieces: list[tuple[str, str]]) -> str:
    """Carry the earlier summary over, and add a line for each thing the person said."""
    lines = [words for who, words in pieces if who == EARLIER and words != NOTHING]
    lines += [f"- The person said: {_line(words)}" for who, words in pieces if _is_person(who)]
    summary = "\n".join(lines)
    return (
        summary[-SUMMARY_MAX:].partition("\n")[2]
        if len(summary) > SUMMARY_MAX
        else (summary or NOTHING)
    )


def _is_person(who: str) -> bool:
    return who == PERSON or who.startswith(MEMBER)


def _line(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= LINE_MAX else f"{line[: LINE_MAX - 1]}…"
