"""What a branch's history holds, and for whom it is read (SPEC C-1, I-2, X-3, X-4)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from services.cortex.core.context.window import Window, tokens_of_rows
from services.cortex.core.draft.chunk import Chunk
from services.cortex.history import History, Inherited
from services.cortex.session.past.inheritance import inherited
from tests.cortex.driver import Driver, answer
from tests.cortex.test_core_children import uses
from tests.support.stack import Stack, running_stack
from vigil.bus.bus import Bus
from vigil.contracts import Row, Start, TextBlock, Turn, encode
from vigil.subjects import SessionKey

PARENT = SessionKey("ann", "vigil", "t1")
BRANCH = PARENT.of_kind("branch", "1f")
AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


def turns_of(*texts: str) -> list[Turn]:
    """Return a parent's turns: messages that were answered, and the last one with a branch."""
    answers = [answer(f"re: {text}") for text in texts[:-1]]
    driver = Driver(lambda _: (answers or [answer("Hm.", *uses("branch", "why?"))]).pop(0))
    for text in texts:
        driver.user(text)
    return driver.turns


async def stored(bus: Bus, turns: list[Turn]) -> int:
    """Store a parent's turns; return the sequence of the last one."""
    first = last = 0
    for turn in turns:
        state = msgspec.structs.replace(turn.state, history_from=first)
        turn = msgspec.structs.replace(turn, state=state)  # noqa: PLW2901
        last = (await bus.publish(PARENT.turn, encode(turn))).seq
        first = first or last
    return last


def texts(found: Inherited) -> list[str]:
    blocks = [block for chunk in found.chunks for row in chunk.rows for block in row.blocks]
    return [block.text for block in blocks if isinstance(block, TextBlock)]


def start(seq: int, parent: SessionKey = PARENT) -> Start:
    return Start(prompt="why?", parent=str(parent), call_id="1f", parent_turn=seq)


async def read(stack: Stack, *, key: SessionKey, given: Start) -> Inherited:
    return await inherited(await stack.bus("cortex"), key, given)


async def test_a_branch_inherits_what_was_said_before_its_turn(tmp_path: Path) -> None:
    async with running_stack(tmp_path, services=()) as stack:
        admin = await stack.bus("admin")
        seq = await stored(admin, turns_of("one", "two"))
        await stored(admin, turns_of("later"))
        found = await read(stack, key=BRANCH, given=start(seq))
        assert texts(found) == ["one", "re: one", "two"]


async def test_no_other_person_no_other_agent_and_no_worker_reads_it(tmp_path: Path) -> None:
    async with running_stack(tmp_path, services=()) as stack:
        seq = await stored(await stack.bus("admin"), turns_of("secret"))
        for key in (
            SessionKey("bob", "vigil", "_branch-1f"),
            SessionKey("ann", "other", "_branch-1f"),
            PARENT.of_kind("worker", "1f"),
        ):
            assert texts(await read(stack, key=key, given=start(seq))) == []


async def test_a_turn_of_another_session_is_no_parents_turn(tmp_path: Path) -> None:
    async with running_stack(tmp_path, services=()) as stack:
        seq = await stored(await stack.bus("admin"), turns_of("secret"))
        other = SessionKey("ann", "vigil", "t2")
        assert texts(await read(stack, key=BRANCH, given=start(seq, other))) == []
        assert texts(await read(stack, key=BRANCH, given=start(seq + 1))) == []


def row(text: str) -> Row:
    return Row(role="user", source="person", blocks=(TextBlock(text=text),), at=AT)


def test_what_is_inherited_comes_first_and_is_left_out_first() -> None:
    known = tuple(row(f"old {i} " + "x" * 300) for i in range(30))
    chunks = [Chunk(seq=i, rows=(r,), tokens=tokens_of_rows((r,))) for i, r in enumerate(known)]
    history = History(80, 10_000)
    history.inherited = Inherited(chunks=tuple(chunks), summary=row("before that"))
    shown = history.rows([row("now")], Window(context_tokens=10_000))
    assert [r.blocks for r in shown] == [r.blocks for r in (row("before that"), *known, row("now"))]
    tight = history.rows([row("now")], Window(context_tokens=2_000))
    assert tight[0] == row("before that")
    assert tight[-1] == row("now")
    assert len(tight) < 20
    assert tight[1:-1] == known[-(len(tight) - 2) :]


def test_the_task_is_shown_however_long_ago_it_was_given() -> None:
    """C-1: a worker's one exchange may be longer than what is shown of a history."""
    task = msgspec.structs.replace(row("count them"), source="task")
    history = History(4, 10_000)
    history.task = task
    window = Window(context_tokens=10_000)
    assert history.rows([task, row("a")], window) == (task, row("a"))
    steps = [row(f"step {i} " + "x" * 9000) for i in range(6)]
    assert history.rows([task, *steps], window) == (task, *steps[-3:])


def test_a_tainted_inheritance_taints() -> None:
    history = History(80, 10_000)
    history.inherited = Inherited()
    assert not history.is_tainted
    history.inherited = Inherited(chunks=(Chunk(seq=1, rows=(), tokens=0, is_tainted=True),))
    assert history.is_tainted
