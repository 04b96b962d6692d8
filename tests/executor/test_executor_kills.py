"""The executor as real processes that are killed, paused and cut off, while sessions ask for work.

Each session is played by the test: it commits a turn, waits for the answer, and goes on, as a loop
of the cortex does.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any, NamedTuple

import pytest

from tests.chaos.processes import Processes, Step
from tests.executor.test_executor_effects import change, effect_of, events, job_of, spawn
from tests.executor.test_executor_grants import by
from tests.support.board_tasks import history, keep, task_of
from tests.support.executing import call, noted, session_on
from tests.support.grants import give, grant_of
from tests.support.memories import Session, until
from tests.support.stack import Stack
from vigil import crash, topology
from vigil.board.grants import standing
from vigil.board.kept import FACTS, KeptBoard, Revision
from vigil.bus.bus import Bus
from vigil.contracts import (
    BoardChange,
    BoardChangePayload,
    BoardTask,
    CallTool,
    CancelCall,
    CancelCallPayload,
    Decision,
    Equal,
    Grant,
    SendVerdict,
    SendVerdictPayload,
    SlotEntry,
    SlotRun,
    SpawnSession,
    TellParent,
    TellParentPayload,
    TellPerson,
    TellPersonPayload,
    ToldPayload,
    ToolResultEvent,
    decode_board,
    decode_event,
)
from vigil.contracts.effects import RaiseBudget, RaiseBudgetPayload
from vigil.errors import Unavailable
from vigil.facts.shape import read_shapes
from vigil.settings.models.raises import of_person
from vigil.settings.switches import find_raise
from vigil.subjects import Scope, SessionKey, token_of
from vigil.timetable.log import SlotLog

DAY = "2026-11-20"
WAITING_MAX = 20
"""Sessions whose calls aren't answered yet."""
FACTS_OF = read_shapes({"n": "count"})
POINTS = tuple(point for point in crash.POINTS if point.startswith("executor."))


@asynccontextmanager
async def processes_of(stack: Stack) -> AsyncIterator[Processes]:
    """Start executors of this home as processes, with the counting tools."""
    processes = Processes(
        stack.settings.home,
        # Commands are no part of this: a sandbox would be tried at each start.
        {"NATS_URL": stack.broker.url, "VIGIL_EXECUTOR__SANDBOX": "off"},
        modules={"executor": "tests.support.executing"},
    )
    try:
        yield processes
    finally:
        await processes.stop()


Quick = tuple[SpawnSession, TellParent, TellPerson, SendVerdict, CallTool, list[Any]]


class Asked(NamedTuple):
    """What one turn asked for."""

    calls: list[CallTool]
    spawned: SpawnSession
    told: TellParent
    home: TellPerson
    verdict: SendVerdict
    withdrawn: CallTool
    quick: list[Any]
    puts: list[BoardChange]
    ends: list[TellParent]
    run: TellParent


class Player:
    """One session that asks for one thing after the other."""

    def __init__(self, bus: Bus, number: int, given: Revision[Grant] | None = None) -> None:
        kind = "_worker-" if number % 2 else "t"
        self.number = number
        self.key = SessionKey("ann", "vigil", f"{kind}{number}")
        self.parent = SessionKey("ann", "vigil", f"p{number}")
        self.home = SessionKey("ann", "vigil", f"h{number}")
        self.told = SessionKey("ann", "vigil", f"s{number}")
        self.asker = SessionKey("ann", "vigil", f"a{number}")
        self.session: Session = session_on(bus, self.key)
        self.given = given
        """By which its calls of `again` are let through."""
        self.turns: list[Asked] = []
        self.raised_to = 0
        self._tries = 0
        """More than the turns where the broker was killed before a turn: what a try had stored by
        then is no turn's, and the next one names things of its own."""
        self._unanswered: set[str] = set()
        self._next_seq = 1

    async def play(self, is_over: asyncio.Event) -> None:
        """Go on and on, as a loop does."""
        while not is_over.is_set():
            with contextlib.suppress(Unavailable):  # the broker was killed: the next try is another
                await self.ask()
                await self.answered()

    async def ask(self, **arguments: Any) -> None:
        """Commit a turn that asks for everything at once."""
        self._tries += 1
        number = 10 * self._tries
        calls = [self._call(tool, number + n, **arguments) for n, tool in enumerate(TOOLS)]
        if self.given is not None:
            calls[-1] = by(self.given, calls[-1])
        # Tasks are one person's: made by all at once they would wait for each other.
        puts = [] if self.number % 4 else [self._put(number + 9)]
        ends = [await self._end(number)] if self.number % 4 == 1 else []
        run = await self._run(number)
        turn = Asked(calls, *self._quick(number), puts, ends, run)
        await self.session.turn(*turn.quick, *puts, *ends, run, *calls)
        self._unanswered |= {one.id for one in (*calls, *puts)}
        self.turns.append(turn)

    async def answered(self) -> None:
        """Wait until every call has an answer."""
        await until(self.is_answered, "the calls were answered", within_s=60)

    async def is_answered(self) -> bool:
        with contextlib.suppress(Unavailable):
            await self._read_on()
        return not self._unanswered

    async def _read_on(self) -> None:
        answers = [self.key.in_event("tool_result")]
        for message in await self.session.bus.read(self.key.stream, answers, self._next_seq):
            self._next_seq = message.seq + 1
            event = decode_event(message.data)
            assert isinstance(event, ToolResultEvent)
            self._unanswered.discard(event.payload.call_id)

    def _call(self, tool: str, ordinal: int, **arguments: Any) -> CallTool:
        return call(tool, ordinal, key=self.key, **({"ms": 5} | arguments))

    def _quick(self, number: int) -> Quick:
        spawned = _of(self.key, spawn(number + 3))
        payload = TellParentPayload(
            parent=str(self.parent),
            call_id=f"{self.key.thread}-{number}",
            state="done",
            content=str(number),
        )
        told = effect_of(TellParent, payload, number + 4, self.key)
        report = ToldPayload(origin=str(self.key), text=str(number))
        home = effect_of(
            TellPerson, TellPersonPayload(home=str(self.home), told=report), number + 8, self.key
        )
        accepted = Decision(approval_id=str(number), verdict="accept", digest="", by="ann")
        sent = SendVerdictPayload(session_key=str(self.asker), decision=accepted)
        verdict = effect_of(SendVerdict, sent, number + 2, self.key)
        raised = RaiseBudgetPayload(day=DAY, times=number, by="ann")
        self.raised_to = max(self.raised_to, number)
        withdrawn = self._call("count", number + 5)
        gone = CancelCallPayload(call_id=withdrawn.id, tool="count")
        entity = job_of("running", id=f"j-{self.key.thread}", runs=number)
        quick = [
            spawned,
            told,
            effect_of(CancelCall, gone, number + 6, self.key),
            _of(self.key, change(entity, number + 7)),
            home,
            verdict,
            effect_of(RaiseBudget, raised, number + 7, self.key),
        ]
        return spawned, told, home, verdict, withdrawn, quick

    def _put(self, number: int) -> BoardChange:
        """A task that is made; one that has ended, of which there may be any number."""
        id_ = token_of(str(self.key), str(number))
        payload = BoardChangePayload(entity=task_of("done", id=id_))
        made: BoardChange = effect_of(BoardChange, payload, number, self.key)
        return made

    async def _end(self, number: int) -> TellParent:
        """A task that this session works on, which ends."""
        id_ = token_of(str(self.key), "worked on", str(number))
        await keep(self.session.bus, task_of("in_progress", id=id_, worker=str(self.key)))
        payload = TellParentPayload(
            parent="", task_id=id_, call_id="", state="done", content=str(number)
        )
        made: TellParent = effect_of(TellParent, payload, number + 90_000, self.key)
        return made

    async def _run(self, number: int) -> TellParent:
        """A slot of the timetable that this session runs, which ends."""
        row, now = token_of(str(self.key), "runs", str(number)), datetime.now(UTC)
        entry = SlotEntry(row=row, due_at=now, state="running", at=now, session=str(self.key))
        log, whose = SlotLog(self.session.bus), self.key.scope
        await log.append(whose, await log.last(whose, row), entry)
        slot = SlotRun(
            row=row, name="r", due_at=now, target=str(self.told), timeout_s=120, facts=FACTS_OF
        )
        payload = TellParentPayload(
            parent="",
            slot=slot,
            call_id="",
            state="done",
            content=str(number),
            facts={"n": str(number % 100)},
        )
        made: TellParent = effect_of(TellParent, payload, number + 80_000, self.key)
        return made

    @property
    def calls(self) -> list[CallTool]:
        return [one for turn in self.turns for one in turn.calls]

    # ------------------------------------------------------------ what must hold

    async def judge(self, runs: Counter[str]) -> None:
        """Compare the log and the runs with what was asked for."""
        bus = self.session.bus
        await self.session.all_acked()
        results = await self.session.results()  # each answered once
        puts = {one.id for turn in self.turns for one in turn.puts}
        assert set(results) == {one.id for one in self.calls} | puts
        assert not any(results[one].payload.is_error for one in puts)
        for one in self.calls:
            if one.payload.tool == "count":
                assert runs[one.id] <= 1
                assert runs[one.id] == 1 or results[one.id].payload.is_error
            if not results[one.id].payload.is_error:
                assert runs[one.id] >= 1
            else:
                assert results[one.id].payload.content.startswith("ambiguous")
                assert one.payload.tool == "count"
        for turn in self.turns:
            for put in turn.puts:
                assert isinstance(put.payload.entity, BoardTask)
                assert await history(bus, put.payload.entity) == ["done"]
            for end in turn.ends:
                ended = task_of(id=end.payload.task_id)
                assert await history(bus, ended) == ["in_progress", "done"]
            slot = turn.run.payload.slot
            assert slot is not None
            entries = [one async for one in SlotLog(bus).newest(self.key.scope, slot.row)]
            assert [one.state for one in entries] == ["ran", "running"]
            known = await KeptBoard(bus, FACTS).find([self.key.scope], slot.row)
            assert known is not None
            assert len(await KeptBoard(bus, FACTS).history(known)) == 1
            assert [one.value for one in known.entity.facts] == [turn.run.payload.facts["n"]]
            assert entries[0].facts == known.entity.newest
            (start,) = await events(bus, self.key.of_kind("worker", turn.spawned.id))
            assert start.payload.start.call_id == turn.spawned.id
        told = [event.payload.call_id for event in once(await events(bus, self.parent))]
        assert told == [turn.told.payload.call_id for turn in self.turns]
        ends = {one.id for turn in self.turns for one in turn.ends}
        main = [event.caused_by for event in await events(bus, MAIN)]
        assert Counter(main) & Counter(ends) == Counter(ends)
        assert len(main) == len(set(main))
        home = [event.caused_by for event in await events(bus, self.home)]
        assert home == [turn.home.id for turn in self.turns]
        heard = [event.caused_by for event in await events(bus, self.told)]
        assert heard == [turn.run.id for turn in self.turns]
        decided = [event.caused_by for event in once(await events(bus, self.asker))]
        assert decided == [turn.verdict.id for turn in self.turns]
        assert not {turn.withdrawn.id for turn in self.turns} & set(runs)
        newest = await bus.get_last("BOARD", self.key.board("job", f"j-{self.key.thread}"))
        assert newest is not None
        job = decode_board(newest.data).entity
        changes = [one for one in self.turns[-1].quick if isinstance(one, BoardChange)]
        assert [job] == [one.payload.entity for one in changes]


TOOLS = ("count", "again")
MAIN = SessionKey("ann", "vigil", "main")


def once(found: list[Any]) -> list[Any]:
    """Return the first of those of one id, as a session takes them: the broker knows a repeat by
    its id for two minutes, and on a slow machine a replica's end is found out later."""
    return list({event.id: event for event in reversed(found)}.values())[::-1]


def _of(key: SessionKey, effect: Any) -> Any:
    """Give an effect the id that it has in this session."""
    return effect_of(type(effect), effect.payload, effect.ordinal, key)


async def judged(stack: Stack, players: list[Player], processes: Processes) -> None:
    runs = noted(stack.settings.home)
    for player in players:
        await player.judge(runs)
    assert not [fault for fault in processes.faults() if "Traceback" in fault]
    bus = players[0].session.bus
    raised_to = max(player.raised_to for player in players)
    assert await find_raise(bus, of_person("ann"), DAY) == raised_to, "never less again"
    assert await bus.read("DEAD", ["dead.>"]) == []


async def test_killed_at_every_point(bare: Stack) -> None:
    """S-5, S-12, X-5: ended at each step, nothing is lost, and no call runs twice that may not."""
    admin, random = await bare.bus("admin"), Random(11)
    given = await give(admin, grant_of(TOOLS[-1], Equal(field="ms", value=5)))
    players: list[Player] = []
    is_over = asyncio.Event()

    async def come() -> None:
        """One new session after the other, because those of before wait for what died; never more
        than it can answer soon, however slow the machine is."""
        waiting: list[Player] = []
        while not is_over.is_set():
            if len(waiting) >= WAITING_MAX:
                oldest = waiting.pop(0)
                if not await oldest.is_answered():
                    waiting.append(oldest)
            if len(waiting) < WAITING_MAX:
                waiting.append(Player(admin, len(players), given))
                players.append(waiting[-1])
                await waiting[-1].ask()
            await asyncio.sleep(random.uniform(0.05, 0.2))

    async with processes_of(bare) as processes:
        steps = [Step(point=point, passage=random.randint(1, 3)) for point in POINTS]
        processes.start("executor", steps)
        coming = asyncio.create_task(come())
        await processes.plans_over(within_s=240)
        is_over.set()
        await coming
        for player in players:
            await player.answered()
        crashed = [e.crash_at.partition(":")[0] for e in processes.exits if e.is_crash]
        assert sorted(crashed) == sorted(POINTS)
        await judged(bare, players, processes)
        (counted,) = await standing(admin, Scope("*", "ann"))
        asked = sum(len(player.turns) for player in players)
        assert counted.uses >= asked, "a repeat may be counted again, and nothing goes uncounted"
        print(f"{len(players)} sessions, {len(crashed)} crashes")


@pytest.mark.usefixtures("own_broker")
@pytest.mark.usefixtures("halved_times")
async def test_two_replicas_killed_and_paused(bare: Stack) -> None:
    """S-5, S-12, X-5: kill -9, SIGSTOP for longer than a lease and a delivery last, the broker
    killed, and turns redelivered: no call runs twice that may not, and each is answered."""
    admin, random = await bare.bus("admin"), Random(3)
    players = [Player(admin, number) for number in range(8)]
    is_over = asyncio.Event()
    names = ("executor", "executor:2")

    async def pause(name: str) -> None:
        assert processes.signal(name, signal.SIGSTOP)
        # Longer than its lease and the broker's patience.
        await asyncio.sleep(1.25 * topology.EXECUTOR_TURNS.ack_wait_s)
        processes.signal(name, signal.SIGCONT)

    async def played(times: int) -> None:
        before = sum(len(player.turns) for player in players)

        async def is_played() -> bool:
            return sum(len(player.turns) for player in players) >= before + times

        await until(is_played, "the sessions go on", within_s=60)

    async with processes_of(bare) as processes:
        for name in names:
            processes.start(name)
        playing = [asyncio.create_task(player.play(is_over)) for player in players]
        await played(20)
        await pause("executor")
        for _ in range(3):
            processes.kill(random.choice(names))
            await played(6)
        bare.broker.watch()
        bare.broker.kill()
        await played(10)
        await pause("executor:2")
        is_over.set()
        await asyncio.gather(*playing)
        await judged(bare, players, processes)


@pytest.mark.usefixtures("halved_times")
async def test_paused_in_the_middle_of_a_call(bare: Stack) -> None:
    """S-12: the other replica says that nobody knows; the one that wakes up doesn't begin anew, and
    what it answers comes second."""
    admin = await bare.bus("admin")
    player = Player(admin, 0)
    gate = bare.settings.home / "gate"
    async with processes_of(bare) as processes:
        processes.start("executor")
        await player.ask(gate="gate")

        async def both_run() -> bool:
            return len(noted(bare.settings.home)) == 2

        await until(both_run, "both calls run")
        processes.signal("executor", signal.SIGSTOP)
        processes.start("executor:2")
        count, again = player.calls
        assert "ambiguous" in (await player.session.result(count)).payload.content

        async def runs_again() -> bool:
            return noted(bare.settings.home)[again.id] == 2

        await until(runs_again, "what may run twice does")
        gate.touch()
        await player.answered()
        processes.signal("executor", signal.SIGCONT)
        await judged(bare, [player], processes)
    assert noted(bare.settings.home)[count.id] == 1
