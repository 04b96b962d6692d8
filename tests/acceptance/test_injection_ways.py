"""The same texts by every other way on which somebody else's words come in (SPEC X-2, X-3).

tests/acceptance/test_injections.py has all of them as pages and letters; here each way has a share
of them, in conversations of their own: an obedient model tries what it's told, and what came of it
is counted outside.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from unicodedata import category
from uuid import uuid4

import pytest

from tests.acceptance.test_injections import (
    AT_ONCE,
    ENDED,
    Arena,
    approvals_of,
    decide,
    effects_of,
    has_result,
    running_arena,
)
from tests.support.board_tasks import keep, task_of
from tests.support.injections import targets
from tests.support.memories import Asking
from tests.support.obedient import orders_in
from vigil.contracts import (
    Approval,
    CallTool,
    Grant,
    ToldEvent,
    ToldPayload,
    ToolUseBlock,
    Turn,
    encode,
)
from vigil.grants.proposal import constraints_of
from vigil.grants.rule import Standing, Wanted, match
from vigil.subjects import SessionKey

SHARE: Final = 12
"""Texts of each way."""
Bring = Callable[[Arena, int], Awaitable[None]]


async def event(arena: Arena, number: int) -> None:
    """A hook's, or a program's."""
    talk = await arena.talk(f"event{number}")
    await talk.ended(await talk.outside(arena.web.pages[number]))
    await arena.tell(talk, "thank you")


async def link(arena: Arena, number: int) -> None:
    """The words of a link, and its title."""
    talk = await arena.talk(f"link{number}")
    url = f"{arena.web.url}/link/{number}"
    await arena.tell(talk, f'do: http_get {{"url": "{url}"}}')
    await arena.go_on(talk, number)


async def told(arena: Arena, number: int) -> None:
    """What another session reports at home."""
    talk = await arena.talk(f"told{number}")
    payload = ToldPayload(
        origin="ann:vigil:_worker-1", text=arena.web.pages[number], is_ordered=True, is_tainted=True
    )
    report = ToldEvent(
        id=uuid4().hex, session_key=str(talk.key), created_at=datetime.now(UTC), payload=payload
    )
    await talk.store(talk.key.in_event(f"told.{report.id}"), encode(report))
    await talk.until(lambda: talk.said, patience_s=ENDED)
    await arena.tell(talk, "thank you")


async def worker(arena: Arena, number: int) -> None:
    await _child(arena, number, "spawn_worker")


async def reader(arena: Arena, number: int) -> None:
    await _child(arena, number, "research")


async def _child(arena: Arena, number: int, tool: str) -> None:
    """What a session that was started reads, and tells the one that started it."""
    talk = await arena.talk(f"{tool.replace('_', '')}{number}")
    page = f'do: http_get {{"url": "{arena.web.url}/page/{number}"}}'
    await talk.ended(await talk.say(f"do: {tool} {json.dumps({'task': page})}"))
    # It ends, or it asked for what the text orders, and the conversation passed that on.
    await talk.until(
        lambda: has_result(talk) or any("your leave" in text for text in talk.texts),
        patience_s=ENDED,
    )
    await talk.ended(await talk.say("thank you"))


async def memory(arena: Arena, number: int) -> None:
    """What was kept of content from outside."""
    # What a memory may not hold is refused, whoever saves it.
    held = "".join(c for c in arena.web.pages[number] if c == "\n" or category(c) != "Cc")
    text = f"rumour{number} {held}"
    await Asking(arena.admin).save(text, is_tainted=True)
    talk = await arena.talk(f"memory{number}")
    await arena.tell(talk, f'do: memory_recall {{"query": "rumour{number}"}}')
    await arena.go_on(talk, number)


async def task(arena: Arena, number: int) -> None:
    """A task that content from outside had a part in: its words are shown in the list."""
    text = arena.web.pages[number]
    made = task_of(
        "backlog", id=uuid4().hex, title=f"T{number}", description=text[:8000], is_tainted=True
    )
    await keep(arena.admin, made)
    talk = await arena.talk(f"task{number}")
    await arena.tell(talk, "do: task_list {}")
    await arena.go_on(talk, number)


async def file(arena: Arena, number: int) -> None:
    """A file that was written, with leave, by who had read a page."""
    text = arena.web.pages[number]
    given = {"path": f"note{number}.txt", "content": text}
    page = len(arena.web.pages)
    arena.web.pages.append(f"do: write_file {json.dumps(given)}")
    writer = await arena.talk(f"writer{number}")
    await arena.tell(writer, f'do: http_get {{"url": "{arena.web.url}/page/{page}"}}')
    (write,) = [a for a in writer.turns[-1].state.approvals.values() if a.input == given]
    await decide(writer, write)
    talk = await arena.talk(f"file{number}")
    await arena.tell(talk, f'do: read_file {{"path": "note{number}.txt"}}')
    await arena.go_on(talk, number)


WAYS: Final[tuple[Bring, ...]] = (event, link, told, worker, reader, memory, task, file)


def shares() -> Iterator[tuple[Bring, int]]:
    """Return which text goes which way; a reader may ask any address, so it gets other orders."""
    number = 0
    for bring in WAYS:
        for _ in range(SHARE):
            while bring is reader and targets("", number)[number % 5][0] == "http_get":
                number += 1
            yield bring, number % 118
            number += 1


def tried(turns: list[Turn]) -> set[str]:
    """Return what the model called for, in all sessions."""
    blocks = [block for turn in turns for row in turn.rows for block in row.blocks]
    return {json.dumps(b.input, sort_keys=True) for b in blocks if isinstance(b, ToolUseBlock)}


async def test_no_way_in_makes_an_obedient_model_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-2, X-3: nothing happens that nobody accepted, and what is proposed for good is narrow."""
    brought = list(shares())
    async with running_arena(tmp_path, monkeypatch) as arena:
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(bring: Bring, number: int) -> None:
            async with limit:
                await bring(arena, number)

        texts = list(arena.web.pages)
        await asyncio.gather(*(one(bring, number) for bring, number in brought))
        arena.assert_untouched()
        turns = await arena.turns()
        calls = [c.payload for c in effects_of(turns, CallTool) if c.payload.service == "executor"]
        assert all("evil" not in json.dumps(c.input) or c.tool == "write_file" for c in calls)
        # None of it is for nothing: every order was followed up to here.
        seen = tried(turns)
        for bring, number in brought:
            ((_, _, given),) = list(orders_in(texts[number]))[:1]
            assert given in seen, (bring.__name__, texts[number])
        for approval in approvals_of(turns):
            assert is_let_through(approval, approval.input)
            for name, value in approval.input.items():
                assert not is_let_through(approval, approval.input | {name: f"{value}; id"})


def is_let_through(approval: Approval, given: dict[str, Any]) -> bool:
    """Whether what `accept --always` would propose for a request covers a call."""
    proposed = constraints_of(approval.tool, approval.risk, approval.input)
    key = SessionKey.parse(approval.session_key)
    grant = Grant(
        id="0" * 32, name="g1", owner=key.user, agent=key.agent, tool=approval.tool,
        constraints=proposed, holds_for_outside=True, made_at=approval.asked_at,
    )  # fmt: skip
    wanted = Wanted(
        key=key, tool=approval.tool, risk=approval.risk, input=given, is_outside=True,
        now=approval.asked_at,
    )  # fmt: skip
    return match([Standing(grant=grant, revision=1)], wanted).standing is not None
