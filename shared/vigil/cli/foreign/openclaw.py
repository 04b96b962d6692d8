"""OpenClaw's home (docs.openclaw.ai: *Agent workspace*, *Memory*, *Cron jobs*). Pure.

    MEMORY.md             what it keeps for good
    memory/2026-02-01.md  what it noted on a day
    USER.md               who the person is
    SOUL.md, IDENTITY.md  who the agent is
    cron/jobs.json        ``{"version": 1, "jobs": [{"name", "enabled", "schedule", "payload"}]}``
    agents/*/sessions     sessions.json, and a conversation in each ID.jsonl: a line for the
                          session, then entries that each name the one before

The first four lie in `workspace/` of the home, or the workspace itself is what is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from .home import NOT_ASKED, HomeForm, Texts, paragraphs, prompt_of, title
from .talks import ForeignTalk, decoded, instant, lines_of, said

_DAY: Final = re.compile(r"(?:.*/)?memory/(\d{4}-\d{2}-\d{2})[^/]*\.md")
_MS_MAX: Final = 253_402_300_800_000
"""The year 10000, which no calendar here has."""
_NOTES: Final = re.compile(r"(?:.*/)?(?:MEMORY\.md|memory/.*\.md)", re.IGNORECASE)


def _memories(path: str, text: str) -> Iterator[dict[str, Any]] | None:
    if path.endswith("USER.md"):
        return paragraphs(path, text, type="identity")
    if day := _DAY.fullmatch(path):
        return paragraphs(path, text, type="observation", **_on(day[1]))
    return paragraphs(path, text, type="fact") if _NOTES.fullmatch(path) else None


def _on(day: str) -> dict[str, str]:
    """Return when a day's notes are of; a day that there isn't is none.

    >>> _on("2026-02-01"), _on("2026-02-31")
    ({'occurred_at': '2026-02-01T12:00:00+00:00'}, {})
    """
    try:
        noon = datetime.strptime(day, "%Y-%m-%d").replace(hour=12, tzinfo=UTC)
    except ValueError:
        return {}
    return {"occurred_at": noon.isoformat()}


def _row(job: dict[str, Any]) -> dict[str, Any]:
    payload = job.get("payload")
    payload = payload if isinstance(payload, dict) else {}
    prompt = prompt_of(payload.get("message") or payload.get("text"))
    return {
        "name": title(job, prompt),
        "prompt": prompt,
        "is_enabled": job.get("enabled", True) is not False,
        **_schedule(job["schedule"]),
    }


def _schedule(found: dict[str, Any]) -> dict[str, Any]:
    """Return a schedule as rows have it. Raises: ValueError.

    >>> _schedule({"kind": "every", "everyMs": 3_600_000})
    {'interval_s': 3600}
    >>> _schedule({"kind": "at", "at": "2026-02-01T16:00:00"})
    {'at': '2026-02-01T16:00:00Z'}
    """
    match found:
        case {"kind": "cron", "expr": str(expression)}:
            zone = found.get("tz")
            return {"cron": expression} | ({"zone": zone} if zone else {})
        case {"kind": "every", "everyMs": int(every)} if every >= 1000:
            return {"interval_s": every // 1000}
        case {"kind": "at", "at": str(at)}:
            has_zone = re.search(r"(Z|[+-]\d{2}:?\d{2})$", at)
            return {"at": at if has_zone else f"{at}Z"}  # theirs are UTC
        case {"kind": "at", "atMs": int(at)} if 0 <= at < _MS_MAX:
            return {"at": datetime.fromtimestamp(at / 1000, UTC).isoformat()}
    raise ValueError(f"its schedule is of a kind that isn't known ({found.get('kind')})")


_TALK: Final = re.compile(r"(agents/[^/]+/sessions/)([^/]+)\.jsonl")
_BY_ITSELF: Final = re.compile(r"(^|:)(cron|hook|subagent|node)(:|$)")
"""In the keys of sessions that no person talked in."""


def _talks(texts: Texts) -> Iterator[tuple[str, ForeignTalk]]:
    for path, text in sorted(texts.items()):
        found = _TALK.fullmatch(path)
        if found is None:
            continue
        key, entry = _entry(texts.get(f"{found[1]}sessions.json", ""), found[2])
        if _BY_ITSELF.search(key):
            continue
        title = entry.get("displayName") or entry.get("subject") or entry.get("label") or ""
        lines, unread = lines_of(text)
        messages = [
            message
            for place, one in enumerate(_branch(lines))
            if isinstance(one.get("message"), dict)
            for message in said(
                str(one.get("id") or f"at {place}"),
                one["message"].get("role"),
                one["message"].get("content"),
                instant(one.get("timestamp") or one["message"].get("timestamp")),
            )
        ]
        yield path, ForeignTalk(f"{found[1]}{found[2]}"[-200:], str(title), messages, unread)


def _entry(store: str, id_: str) -> tuple[str, dict[str, Any]]:
    """Return what the list of sessions says of one: its key, and the rest."""
    try:
        entries = decoded(store) if store else {}
    except ValueError:
        entries = {}
    for key, entry in entries.items() if isinstance(entries, dict) else ():
        if isinstance(entry, dict) and entry.get("sessionId") == id_:
            return key, entry
    return "", {}


def _branch(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries that lead to the newest one; all, where one of them is missing."""
    known = {one["id"]: one for one in lines if isinstance(one.get("id"), str)}
    at = lines[-1] if lines else {}
    found: list[dict[str, Any]] = []
    while at and len(found) <= len(lines):
        found.append(at)
        parent = at.get("parentId")
        if not parent:
            return found[::-1]
        at = known.get(parent, {}) if isinstance(parent, str) else {}
    return lines


FORM: Final = HomeForm(
    name="openclaw",
    files=(
        "*.md",
        "memory/**/*.md",
        "workspace/*.md",
        "workspace/memory/**/*.md",
        "cron/jobs.json",
        "agents/*/sessions/*.jsonl",
        "agents/*/sessions/sessions.json",
    ),
    memories=_memories,
    jobs="cron/jobs.json",
    row=_row,
    kept={
        "SOUL.md": NOT_ASKED,
        "IDENTITY.md": NOT_ASKED,
        "AGENTS.md": "instructions for another agent's tools",
        "TOOLS.md": "notes on another agent's tools",
        "HEARTBEAT.md": "what to look at again and again: `vigil cron add` makes a row of it",
        "BOOT.md": "what to do when another agent starts",
        "BOOTSTRAP.md": "another agent's first start",
    },
    talks=_talks,
)
