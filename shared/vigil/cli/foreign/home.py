"""What is read of another agent's home, and what isn't, and why. Pure.

What such an agent wrote down may be whatever it once read, so it is from outside unless the person
vouches for it. A schedule is acted on, and can't have that mark: without their word it is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from vigil.words.amounts import count_of

from ..documents.pieces import pieces
from .talks import ForeignTalk, dated, decoded, whole

Texts = Mapping[str, str]
"""What the files of a home say, by their paths in it."""
IDENTITY: Final = ("SOUL.md", "IDENTITY.md")
"""The files of other agents that mean what Vigil's of the same names mean."""
NOT_ASKED: Final = "who an agent is: --identity makes it yours, if you are an admin"
UNREAD: Final = "a schedule is acted on: read it, and take it with --trusted"


class HomeLine(NamedTuple):
    """Something that is to be taken, and where it stands."""

    file: str
    number: int
    """Of the note or the job in that file, from 1."""
    value: dict[str, Any]


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """Something that isn't taken."""

    file: str
    line: int = 0
    why: str


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a home has, by its kinds: `memories`, `rows` and `conversations`."""

    form: str
    """Of which it is."""
    lines: dict[str, list[HomeLine]]
    left: list[Unread]
    kept: dict[str, str]
    """Files that are known and never taken, and why."""
    identity: dict[str, str]
    """What the files say that say who the agent is, by their names here."""


class HomeForm(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent keeps its home."""

    name: str
    files: tuple[str, ...]
    """Patterns of the files that are read."""
    memories: Callable[[str, str], Iterator[dict[str, Any]] | None]
    """What a file says to remember, by its path and text; None: it has no memories."""
    jobs: str
    """The end of the path of the file of schedules."""
    row: Callable[[dict[str, Any]], dict[str, Any]]
    """Makes a row of a job. Raises: ValueError, why it can't be one."""
    kept: Mapping[str, str]
    """Why files are left, by the ends of their paths."""
    talks: Callable[[Texts], Iterator[tuple[str, ForeignTalk]]]
    """What was said in conversations, each with the path of its file."""


def read(form: HomeForm, texts: Texts, *, is_trusted: bool) -> Reading:
    """Return what a home has."""
    memories: list[HomeLine] = []
    rows: list[HomeLine] = []
    left: list[Unread] = []
    kept = {
        path: why
        for path in texts
        for end, why in form.kept.items()
        if path == end or path.endswith(f"/{end}")
    }
    for path, text in sorted(texts.items()):
        if path in kept:
            continue
        if path == form.jobs or path.endswith(f"/{form.jobs}"):
            rows += _rows(form, path, text, left, is_trusted=is_trusted)
            continue
        for number, one in enumerate(form.memories(path, text) or (), 1):
            marks = {"is_tainted": not is_trusted}
            source = f"{form.name}:{path}"[:200]
            memories.append(HomeLine(path, number, {"source": source, **one, **marks}))
    identity = {name: texts[path] for path in kept if (name := path.split("/")[-1]) in IDENTITY}
    talks: list[HomeLine] = []
    for path, told in form.talks(texts):
        if told.unread:
            more = len(told.unread) - 1
            others = f", nor can {count_of(more, 'line')} below it" if more else ""
            why = f"can't be read{others}"
            left.append(Unread(file=path, line=told.unread[0], why=why))
        messages = dated(told.messages)
        if told.messages and not messages:
            name = told.title or told.id
            left.append(Unread(file=path, why=f"{name}: none of its messages has a time"))
        for talk in whole([told._replace(messages=messages)]):
            said = {"id": talk.id, "title": talk.title, "messages": talk.messages}
            talks.append(HomeLine(path, 0, {**said, "is_trusted": is_trusted}))
    lines = {"memories": memories, "rows": rows, "conversations": talks}
    return Reading(form=form.name, lines=lines, left=left, kept=kept, identity=identity)


def _rows(
    form: HomeForm, path: str, text: str, left: list[Unread], *, is_trusted: bool
) -> Iterator[HomeLine]:
    try:
        jobs = _jobs(decoded(text))
    except ValueError as error:
        left.append(Unread(file=path, why=f"can't be read: {error}"))
        return
    for number, job in enumerate(jobs, 1):
        try:
            row = form.row(_object(job))
        except ValueError as error:
            left.append(Unread(file=path, line=number, why=str(error)))
        else:
            if is_trusted:
                yield HomeLine(path, number, row)
            else:
                left.append(Unread(file=path, line=number, why=f"{row['name']!r}: {UNREAD}"))


def _jobs(stored: Any) -> list[Any]:
    jobs = stored.get("jobs") if isinstance(stored, dict) else stored
    if isinstance(jobs, dict):
        return list(jobs.values())
    if not isinstance(jobs, list):
        raise ValueError("has no list of jobs")
    return jobs


def _object(job: Any) -> dict[str, Any]:
    if not isinstance(job, dict) or not isinstance(job.get("schedule"), dict):
        raise ValueError("has no schedule that is an object")
    return job


def title(job: Mapping[str, Any], prompt: str) -> str:
    """Return what a job is called, in one line.

    >>> title({"name": ""}, "Look at the\\nweather")
    'Look at the weather'
    """
    return " ".join(str(job.get("name") or prompt).split())[:100]


def prompt_of(text: Any) -> str:
    """Return what a job asks for. Raises: ValueError, nothing that an agent could do."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError("runs no prompt, but a program of its own")
    return text


def paragraphs(path: str, text: str, **fields: Any) -> Iterator[dict[str, Any]]:
    """Yield a Markdown file in pieces, each under its headings."""
    for piece in dict.fromkeys(pieces(text, path)):
        yield {"content": piece, **fields}


def entries(texts: Iterable[str], **fields: Any) -> Iterator[dict[str, Any]]:
    for one in dict.fromkeys(text.strip() for text in texts):
        if one:
            yield {"content": one, **fields}
