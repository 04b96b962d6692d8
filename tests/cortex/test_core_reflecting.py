"""Properties of the compactor and of pauses, over random lives of a session (SPEC I-4, M)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from services.cortex import core
from services.cortex.core import CompactionPlan, Draft, Moment, Policy, Window, loops
from services.cortex.core.context.compaction import (
    CUT_OFF,
    Excerpt,
    bounded,
    decide,
    summary_bytes_max,
    summary_tokens,
)
from services.cortex.core.context.history import FILL_MAX, chunk_of
from services.cortex.core.context.offers import was_offered
from services.cortex.core.context.window import Measured, tokens_of_rows
from services.cortex.core.draft.chunk import Chunk
from services.cortex.history import History
from services.cortex.model import ModelAnswer
from tests.cortex.driver import KEY, START, answer, call
from tests.cortex.reflecting import POLICY, ROWS_MAX, WINDOW, ReflectingDriver
from tests.cortex.test_core import scripted
from tests.support.examples import up_to
from vigil.contracts import (
    Cause,
    Row,
    SaveMemory,
    SendMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
)
from vigil.memory.questions import CONTENT_BYTES_MAX

LENGTHS: Final = st.sampled_from([1, 50, 400, 1500, 4000])
"""Bytes of a text: the window holds 12,000."""
SUMMARIES: Final = st.sampled_from(
    [
        answer("They talked."),
        answer("<summary>They talked of tea.</summary>", call("memory_save", content="tea")),
        answer("s" * 20_000),
        answer("half a summ", call("memory_save", content="x"), stop="max_tokens"),
        answer(""),
        answer(call("memory_save", content="only this")),
        answer("no", stop="refusal"),
        TimeoutError("529"),
        ValueError("401"),
    ]
)
SAVES: Final = st.sampled_from(
    [
        answer(call("memory_save", content="tea", type="preference")),
        answer(*[call("memory_save", content=f"{n}") for n in range(30)]),
        answer("Nothing."),
        answer(call("memory_save", content="")),
        answer(stop="refusal"),
        TimeoutError("529"),
        ValueError("401"),
    ]
)
ANSWERS: Final = st.one_of(
    st.builds(lambda n: answer("a" * n), LENGTHS),
    st.builds(lambda n: answer("b" * n, call("memory_recall", query="tea")), LENGTHS),
    st.just(answer(call("schedule_followup", delay_seconds=45, reason="r", message="Hey"))),
    st.just(answer(call("memory_recall", query="a"), call("no_such_tool"))),
    st.just(TimeoutError("529")),
)


class Life(RuleBasedStateMachine):
    """Messages, tools, events, time, failures: with a small window and short pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = ReflectingDriver(self.think, self.reflect)
        self.script: list[ModelAnswer | Exception] = []
        self.summary: ModelAnswer | Exception = answer("They talked.")
        self.saving: ModelAnswer | Exception = answer("Nothing.")
        self.driver_plan = self.driver.plan
        self.driver.plan = self.checked_plan  # type: ignore[method-assign]
        self.words = 0
        """User messages since memory was last offered something, or at a failure."""

    # ------------------------------------------------------------ what the models do

    def think(self, draft: Draft) -> ModelAnswer | Exception:
        self.what_is_shown_is_whole(self.driver.shown(draft.rows), len(draft.rows))
        return self.script.pop() if self.script else answer("Hello.")

    def reflect(self, purpose: str) -> ModelAnswer | Exception:
        return self.summary if purpose == "compact" else self.saving

    def checked_plan(self, draft: Draft) -> CompactionPlan | None:
        """I-4: by how full it is; whole exchanges; two rows stay."""
        driver, window = self.driver, self.driver.window
        chunks = list(driver.history._chunks)
        tokens = sum(c.tokens for c in chunks) + tokens_of_rows(draft.rows)
        fill = window.fill(tokens + summary_tokens(driver.history.summary))
        plan = self.driver_plan(draft)
        if plan is None:
            return None
        assert plan.fill == fill
        assert fill >= 0.80
        assert plan.kind == ("drop" if fill >= 0.95 else "summarise")
        kept = [*(row for c in chunks[plan.count :] for row in c.rows), *draft.rows]
        assert len(kept) >= 2
        assert kept[0].source in ("person", "timer", "external")
        return plan

    # ------------------------------------------------------------ what happens

    @rule(script=st.lists(ANSWERS, max_size=4), summary=SUMMARIES, saving=SAVES)
    def plan(self, script: list[Any], summary: Any, saving: Any) -> None:
        self.script, self.summary, self.saving = script, summary, saving

    @rule(length=LENGTHS)
    def user(self, length: int) -> None:
        self.driver.user("u" * length)

    @rule(length=LENGTHS, is_trusted=st.booleans())
    def outside(self, length: int, is_trusted: bool) -> None:
        self.driver.outside("e" * length, is_trusted=is_trusted)

    @precondition(lambda self: self.driver.open_calls())
    @rule(length=LENGTHS, is_tainted=st.booleans())
    def result(self, length: int, is_tainted: bool) -> None:
        self.driver.result(None, "r" * length, is_tainted=is_tainted)

    @rule(seconds=st.sampled_from([1.0, 20.0, 61.0, 200.0]))
    def wait(self, seconds: float) -> None:
        self.driver.pass_time(seconds)

    @rule()
    def stop(self) -> None:
        self.driver.control("stop")

    @rule(is_paused=st.booleans())
    def switch(self, is_paused: bool) -> None:
        self.driver.is_paused = is_paused

    # ------------------------------------------------------------ what always holds

    def what_is_shown_is_whole(self, rows: tuple[Row, ...], more: int) -> None:
        """I-2, I-4: within the window, no result without its call, the summary first; so many rows
        of the history, and `more` of the turn in the making."""
        called: set[str] = set()
        for row in rows:
            called |= {b.id for b in row.blocks if isinstance(b, ToolUseBlock)}
            answered = {b.tool_use_id for b in row.blocks if isinstance(b, ToolResultBlock)}
            assert answered <= called
        summary = self.driver.history.summary
        assert [row.source for row in rows].count("system") == bool(summary)
        assert not summary or rows[0].source == "system"
        sources = [row.source for row in rows if row.source != "system"]
        results = [a == b == "tool" for a, b in pairwise(sources)]
        assert len(sources) - sum(results) <= ROWS_MAX + more
        window = self.driver.window
        if len(rows) > 1 + bool(summary):
            assert window.fill(tokens_of_rows(rows)) <= FILL_MAX

    @invariant()
    def compacting_makes_room(self) -> None:
        """The fill after it is below the fill before; one turn, which adds no rows."""
        for turn, before, after, rows in self.driver.rooms[-1:]:
            assert after < before
            assert rows >= 2
            assert (turn.outcome, turn.rows, turn.state.summary_seq) == ("compacted", (), 0)
            assert turn.summary
            assert turn.state.loop is not None

    @invariant()
    def the_log_gives_the_same_history(self) -> None:
        """S-4: whoever takes the session over sees what was seen here."""
        driver, found = self.driver, asyncio.run(self.driver.reloaded())
        assert found.state == driver.state
        assert found.history.summary == driver.history.summary
        assert found.history._chunks == driver.history._chunks
        assert found.history.rows([], WINDOW) == driver.history.rows([], WINDOW)

    @invariant()
    def at_most_one_pause_is_waited_for(self) -> None:
        open_pauses = {timer for timer in self.driver.open_timers if timer[0] == "_pause"}
        pause = self.driver.state.pause
        assert open_pauses == (set() if pause is None else {("_pause", pause.generation)})

    @invariant()
    def nobody_hears_of_it(self) -> None:
        for turn in self.driver.turns[-3:]:
            if turn.outcome in ("saved", "compacted"):
                assert not [e for e in turn.effects if isinstance(e, SendMessage)]
                assert turn.usage or not _saves(turn) or "compacted_unread" in _codes(turn)

    @invariant()
    def memories_say_where_they_come_from(self) -> None:
        for turn in self.driver.turns[-3:]:
            for save in _saves(turn):
                assert save.payload.source == "chat:t1"
                assert save.payload.provenance

    def teardown(self) -> None:
        """Every pause ends, and then nothing is asked any more."""
        driver = self.driver
        driver.is_paused, self.script, self.saving = False, [], answer("Nothing.")
        driver.pass_time(100_000)
        assert driver.state.pause is None
        assert driver.state.loop is None
        asked = len(driver.asked)
        driver.pass_time(100_000)
        assert len(driver.asked) == asked


# ---------------------------------------------------------------- by how full it is


def chunks_of(count: int, tokens: int) -> list[Chunk]:
    """So many exchanges of two rows, each of so many tokens by the estimate."""
    empty = tokens_of_rows([person("")])
    return [
        Chunk(seq=n + 1, rows=(person(text), agent(text)), tokens=tokens)
        for n in range(count)
        for text in ["x" * max(3 * (tokens // 2 - empty), 0)]
    ]


def person(text: str) -> Row:
    return Row(role="user", source="person", blocks=(TextBlock(text=text),), at=START)


def agent(text: str) -> Row:
    return Row(role="assistant", source="agent", blocks=(TextBlock(text=text),), at=START)


@pytest.mark.parametrize(
    ("fill", "kind", "rows"),
    [
        (0.79, None, 0),
        (0.80, "summarise", 6),
        (0.84, "summarise", 6),
        (0.85, "summarise", 10),
        (0.94, "summarise", 10),
        (0.95, "drop", 10),
        (3.00, "drop", 16),
    ],
)
def test_what_goes_depends_on_how_full_it_is(fill: float, kind: str | None, rows: int) -> None:
    """I-4: 30 % of 20 rows are 6, 50 % are 10; what is beyond 95 % goes until it is below 80 %."""
    window = Window(context_tokens=100_000)
    plan = decide(chunks_of(10, int(100_000 * fill / 10)), [], "", window)
    assert (plan.kind, plan.count * 2) == (kind, rows) if plan else kind is None


def test_of_unequal_rows_so_many_go_that_it_helps() -> None:
    """I-4: the oldest 30 % are 30 % of the size, too; what is small saves nothing."""
    window = Window(context_tokens=100_000)
    small, large = chunks_of(8, 10), chunks_of(2, 42_000)
    plan = decide([*small, *large], [], "", window)
    assert plan is not None
    assert plan.count == 9
    assert decide([*small, *chunks_of(1, 82_000)], [], "", window) is None


def test_two_rows_and_the_open_exchange_stay() -> None:
    window = Window(context_tokens=100_000)
    assert decide(chunks_of(1, 90_000), [], "", window) is None
    assert decide(chunks_of(1, 90_000), [person("new")], "", window) is None
    plan = decide(chunks_of(2, 99_000), [person("new")], "", window)
    assert plan is not None
    assert (plan.kind, plan.count) == ("drop", 1)


def test_a_summary_is_never_longer_than_it_may_be() -> None:
    """I-4: 8 kB, and a tenth of a small window; it says that it was cut."""
    assert summary_bytes_max(Window(context_tokens=200_000)) == 8192
    assert summary_bytes_max(Window(context_tokens=4000)) == 1200
    for text in ("s" * 9000, "я" * 9000, "😀" * 9000):
        cut = bounded(text, 8192)
        assert 8000 < len(cut.encode()) <= 8192
        assert cut.endswith(CUT_OFF)


@pytest.mark.parametrize(
    ("real", "ratio"), [(100, 0.75), (800, 0.8), (1300, 1.3), (50_000, 1.5), (0, 0.75)]
)
def test_what_a_call_took_corrects_the_estimate_within_bounds(real: int, ratio: float) -> None:
    assert Measured(real, 900).ratio(100) == ratio


def test_a_failed_summary_tells_nothing_of_the_size_of_a_request() -> None:
    """I-4: its call was about a transcript, so the window would seem emptier than it is."""
    history = History(80, 10_000)
    draft = Draft(KEY, ReflectingDriver().state, Moment(now=START), Policy())
    history.add(1, msgspec.structs.replace(draft.finish("t1", history_from=1), rows=(person("x"),)))
    loops.begin(draft, Cause(id="e1", seq=2, type="user_message"), is_direct=True)
    chunks = tuple(chunks_of(1, 100))
    cut = Excerpt(chunks=chunks, whole=chunks, keep_from=2)
    assert not core.summarise(draft, cut, answer(""), WINDOW)
    history.add(3, draft.finish("t2", history_from=1))
    assert history.window(300).ratio == 1.0


# ---------------------------------------------------------------- what is saved


def test_a_memory_that_is_too_long_in_bytes_is_cut_not_lost() -> None:
    """M-2: memory refuses more than 16 kB, and nobody would hear of that."""
    driver = ReflectingDriver(reflect=lambda _: answer(call("memory_save", content="я" * 16_000)))
    driver.user()
    driver.pass_time(61)
    (save,) = _saves(driver.turns[-1])
    assert 16_000 < len(save.payload.content.encode()) <= CONTENT_BYTES_MAX


@pytest.mark.parametrize("is_held", [False, True])
def test_an_answer_that_was_not_sent_is_tainted_all_the_same(*, is_held: bool) -> None:
    """X-3: its rows may be offered to memory without those of the event that began it."""
    driver = ReflectingDriver(scripted(answer(call("memory_recall", query="x")), answer("It is 7")))
    driver.outside("the code is 7")
    driver.policy = msgspec.structs.replace(driver.policy, max_consecutive=0)
    if is_held:
        driver.policy = msgspec.structs.replace(driver.policy, max_consecutive=3)
        driver.quiet_until = driver.now + timedelta(hours=1)
    (turn,) = driver.result()
    assert (turn.state.loop, len(turn.rows), driver.texts) == (None, 2, [])
    assert chunk_of(9, turn).is_tainted


def test_a_message_that_ends_a_tainted_loop_is_the_persons_own() -> None:
    driver = ReflectingDriver(scripted(answer(call("memory_recall", query="x")), answer("Hello.")))
    driver.outside("the code is 7")
    turn = driver.user()[0]
    assert turn.rows[0].source == "person"
    assert not chunk_of(9, turn).is_tainted


# ---------------------------------------------------------------- pauses


def test_a_busy_conversation_costs_one_timer_in_a_pause() -> None:
    """Not one for each message: ten minutes of a message every 10 s with a pause of 60 s."""
    driver = ReflectingDriver()
    for _ in range(60):
        driver.user()
        driver.pass_time(10)
    timers = [timer for timer in driver.scheduled if timer[0] == "_pause"]
    assert len(timers) <= 12
    assert driver.asked == []
    driver.pass_time(60)
    assert driver.asked == ["save"]


def test_a_due_follow_up_does_not_wait_for_it() -> None:
    """S-8: what comes in closes the loop that looks back; it is looked at again."""
    driver = ReflectingDriver(reflect=lambda _: TimeoutError("529"))
    driver.brain = lambda _: answer("ok")
    driver.user()
    driver.pass_time(61)
    assert driver.turns[-1].outcome == "waiting"
    (turn,) = driver.outside()
    assert (turn.state.loop, turn.state.pause is None) == (None, False)
    assert next(note.code for note in turn.notes) == "save_put_off"
    assert driver.texts[-1] == "ok"


def test_events_that_nobody_is_asked_about_do_not_disturb_it() -> None:
    """A flood of them would end each look back, which is paid for, and memory would get nothing."""
    driver = ReflectingDriver(reflect=lambda _: TimeoutError("529"))
    driver.user()
    driver.pass_time(60)
    assert [turn.outcome for turn in driver.turns][-1] == "waiting"
    driver.policy = msgspec.structs.replace(driver.policy, max_consecutive=0)
    (blocked,) = driver.outside()
    driver.quiet_until = driver.now + timedelta(hours=1)
    driver.policy = POLICY
    (held,) = driver.outside()
    assert [turn.outcome for turn in (blocked, held)] == ["blocked", "held"]
    assert driver.state.loop is not None
    driver.reflect = lambda _: answer(call("memory_save", content="tea"))
    driver.pass_time(10)
    assert [turn.outcome for turn in driver.turns][-1] == "saved"
    assert driver.texts == ["Hello."]


def test_a_session_from_before_pauses_is_offered_whole() -> None:
    """I-4: what an earlier version left, or a setting, counts as offered to nobody."""
    driver = ReflectingDriver()
    driver.policy = msgspec.structs.replace(POLICY, pause_s=0)
    driver.user("old")
    driver.policy = POLICY
    draft, chunk = driver._draft(), driver.history._chunks[0]
    assert not was_offered(draft, chunk)
    driver.user("new")
    assert not was_offered(driver._draft(), chunk)
    assert [chunk.rows[0].blocks[0] for chunk in driver.offer().chunks] == [
        TextBlock(text="old"), TextBlock(text="new"),
    ]  # fmt: skip
    driver.pass_time(61)
    assert driver.asked == ["save"]
    assert was_offered(driver._draft(), chunk)
    driver.user("newest")
    assert len(driver.offer().chunks) == 1


def test_a_deadline_that_is_passed_over_ends_the_wait() -> None:
    """A poison timer: the next exchange begins another wait."""
    driver = ReflectingDriver()
    driver.user()
    pause = driver.state.pause
    assert pause is not None
    event = driver.timer_event("_pause", pause.generation)
    payload = msgspec.structs.replace(event.payload, kind="deadline")
    event = msgspec.structs.replace(event, payload=payload)
    cause = Cause(id=event.id, seq=10_000, type="timer")
    driver.commit(core.poison(KEY, driver.state, cause, "x", driver.moment(), driver.policy, event))
    assert driver.state.pause is None
    assert driver.state.unsaved_from > 0
    driver.user()
    driver.pass_time(61)
    assert driver.asked == ["save"]


def _saves(turn: Turn) -> list[SaveMemory]:
    return [effect for effect in turn.effects if isinstance(effect, SaveMemory)]


def _codes(turn: Turn) -> list[str]:
    return [note.code for note in turn.notes]


@pytest.mark.hypothesis
def test_life() -> None:
    limits = up_to(60, stateful_step_count=40)
    run_state_machine_as_test(Life, settings=limits)
