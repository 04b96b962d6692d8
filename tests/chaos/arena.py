"""One run: a broker, services as processes, people who talk, and the judgement at the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from tests.chaos.checker import Rules, check_log
from tests.chaos.clients import Client
from tests.chaos.history import Histories, SessionLog
from tests.chaos.processes import Processes
from tests.chaos.records import check_records
from tests.support import signals
from tests.support.stack import running_broker, settings_of
from vigil.broker.ports import free_port
from vigil.broker.process import Broker
from vigil.bus.bus import Bus, Follower, Message
from vigil.contracts import External, ExternalPayload, decode_dead_letter, encode
from vigil.errors import VigilError
from vigil.layout import LOG, name_of
from vigil.local.home import ensure_home
from vigil.settings import tokens
from vigil.settings.sections import Nats
from vigil.subjects import SessionKey

PARTITIONS: Final = 4
"""Of the log; with one, names and subjects are those of everywhere else."""
SETTLE_S: Final = 40.0
"""After the last kill everything must be over within this: a wake that a killed replica held
comes back after 8 s, to find that the lease is free, and may have to do so again."""
LINES_SHOWN: Final = 40
RULES: Final = Rules(max_consecutive=2, cooldown_ms=800, ordered_per_hour=20)
ENVIRONMENT: Final = {
    "VIGIL_MODEL": "rehearsal",
    "VIGIL_MODEL__REHEARSAL_WORD_MS": "0",
    "VIGIL_AUTONOMY__ENABLED": "true",
    "VIGIL_CORTEX__AUTONOMY_ENABLED": "false",
    "VIGIL_MIND__ENABLED": "false",
    "VIGIL_MEMORY__WARM_WAIT_S": "0",
    "VIGIL_AUTONOMY__MAX_CONSECUTIVE": str(RULES.max_consecutive),
    "VIGIL_AUTONOMY__COOLDOWN_MS": str(RULES.cooldown_ms),
    "VIGIL_AUTONOMY__ORDERED_PER_HOUR": str(RULES.ordered_per_hour),
    "VIGIL_SESSIONS__IDLE_RELEASE_S": "0.7",
    "VIGIL_GATEWAY__DISK_FREE_BYTES_MIN": "0",
}


AGENTS: Final = """
[agents.hasty]
double_text = "interrupt"

[agents.patient]
double_text = "coalesce"
coalesce_ms = 200
"""
"""Agents of each way to take double texts, beside the default one (SPEC S-13)."""


class Arena:
    """What a test of this folder works with."""

    broker: Broker
    """The one that is watched over; a cluster has none."""

    def __init__(
        self,
        home: Path,
        url: str,
        admin: Bus,
        port: int,
        seed: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.home = home
        self.admin = admin
        self.rules = RULES
        self.port = port
        self.random = Random(seed)
        self.seed = seed
        self.processes = Processes(
            home,
            ENVIRONMENT | {"NATS_URL": url, "VIGIL_PORT": str(port), **(environment or {})},
        )
        self.clients: list[Client] = []
        self.planted = 0
        """Poison messages that were published on purpose."""
        self._talking: list[asyncio.Task[None]] = []
        self._listening: list[asyncio.Task[None]] = []
        self._following: list[asyncio.Task[None]] = []
        self.histories = Histories()
        """The log as it grows."""

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    # ------------------------------------------------------------ people

    async def client(self, user: str, agent: str = "vigil") -> Client:
        """Make a person with a socket, who says only what the test says."""
        token = await tokens.create(self.admin, user=user, now=datetime.now(UTC))
        random = Random(self.random.random())
        client = Client(self.port, f"{user}:{agent}:t", token, random)
        self.clients.append(client)
        self._listening.append(asyncio.create_task(client.listen(), name=f"listen-{user}"))
        return client

    async def talk(self, sessions: int, agents: Sequence[str] = ("vigil",)) -> None:
        """Let so many people talk, with these agents in turn."""
        for number in range(sessions):
            client = await self.client(f"u{number}", agents[number % len(agents)])
            self._talking.append(asyncio.create_task(client.talk(), name=f"talk-u{number}"))

    def tell(self) -> None:
        """Let events come in from outside, into all sessions, until everybody is hushed."""
        self._talking.append(asyncio.create_task(self._tell(Random(self.seed)), name="outside"))

    async def _tell(self, random: Random) -> None:
        while all(client.is_talking for client in self.clients):
            key = SessionKey.parse(random.choice(self.clients).records.session)
            event = External(
                id=f"outside-{random.getrandbits(64):016x}",
                session_key=str(key),
                created_at=datetime.now(UTC),
                payload=ExternalPayload(source="hook:chaos", content="red", kind="build.failed"),
            )
            for _ in range(random.choice((1, 1, 2))):  # a sender may repeat itself
                await self._store(key.in_event("external"), encode(event))
            await asyncio.sleep(random.uniform(0.0, 0.2))

    async def _store(self, subject: str, data: bytes) -> None:
        """Publish until it is acknowledged; what was stored before that is stored again."""
        while True:
            try:
                await self.admin.publish(subject, data)
            except VigilError:
                await asyncio.sleep(0.1)
            else:
                return

    async def hush(self) -> None:
        """Let everybody finish what they are saying."""
        for client in self.clients:
            client.is_talking = False
        _, late = await asyncio.wait(self._talking, timeout=SETTLE_S)
        assert not late, f"{len(late)} messages were never accepted"
        for task in self._talking:
            task.result()

    # ------------------------------------------------------------ the log

    async def follow(self) -> None:
        """Keep `histories` up to date from now on."""

        async def run(follower: Follower) -> None:
            try:
                async for message in follower:
                    self.histories.add(message)
            finally:
                await follower.close()

        for log in (await self.admin.layout()).logs:
            follower = await self.admin.follow(log, ["session.>"], 1)
            self._following.append(asyncio.create_task(run(follower), name=f"follow-{log}"))

    async def until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        """Wait until `condition` holds.

        Raises:
            AssertionError: it doesn't within `within_s`.
        """
        deadline = self.now_s() + within_s
        while not condition():
            self._check()
            assert self.now_s() < deadline, f"not within {within_s} s: {what}"
            await asyncio.sleep(0.1)

    def _check(self) -> None:
        """Let nothing that runs beside the test end unseen."""
        for task in (*self._listening, *self._talking, *self._following):
            if task.done():
                task.result()
        self.processes.check()

    def is_settled(self) -> bool:
        """Whether nothing is left to be done or to arrive, as far as it was told."""
        return self._is_settled(self.histories)

    def _is_settled(self, histories: Histories) -> bool:
        return all(map(_is_over, histories.sessions.values())) and all(
            _has_all(client, histories) for client in self.clients
        )

    # ------------------------------------------------------------ the end

    async def verdict(self) -> str:
        """Wait until all is over; return what is wrong, in words, or an empty string."""
        deadline = self.now_s() + SETTLE_S
        while True:
            with contextlib.suppress(AssertionError):
                await self.until(self.is_settled, deadline - self.now_s(), "everything over")
            logs = (await self.admin.layout()).logs
            messages = [one for log in logs for one in await self.admin.read(log, ["session.>"])]
            histories = Histories(messages)
            # What follows the log may be behind it: its leader was killed.
            if self._is_settled(histories) or self.now_s() > deadline:
                break
            await asyncio.sleep(0.5)
        rules = msgspec.structs.replace(self.rules, ended_at=datetime.now(UTC))
        found = check_log(histories, rules)
        found += check_records(histories, [client.records for client in self.clients])
        found += self.processes.faults()
        found += await self._dead_letters()
        found += await self._signals(messages)
        return self._report(found, histories) if found else ""

    async def _signals(self, messages: list[Message]) -> list[str]:
        """C-4: what was told of the whole log; a killed projector's lease lives for 5 s."""
        told = await signals.settled(self.admin)
        of_sessions = [one for one in told if name_of(one.source.stream) == LOG]
        return signals.wrong(signals.expected_of(messages), of_sessions)

    async def _dead_letters(self) -> list[str]:
        letters = [decode_dead_letter(m.data) for m in await self.admin.read("DEAD", ["dead.>"])]
        if len({letter.id for letter in letters}) == self.planted:
            return []
        return [
            f"X6 {letter.service} buried {letter.subject}: {letter.cause}" for letter in letters
        ]

    def _report(self, found: list[str], histories: Histories) -> str:
        named = {name for name in histories.sessions for one in found if f" {name}:" in one}
        shown = [
            "\n".join([f"--- {name}", *histories.sessions[name].lines[-LINES_SHOWN:]])
            for name in sorted(named)[:2]
        ]
        for name in named:
            path = self.home / "sessions" / f"{name.replace(':', '-')}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(histories.sessions[name].lines), "utf-8")
        head = f"{len(found)} violations (seed {self.seed}; logs in {self.home}):"
        return "\n".join([head, *found[:30], *shown])

    def counts(self) -> dict[str, Any]:
        """Return what happened, for a person to read."""
        logs = list(self.histories.sessions.values())
        receipts = [r.record.outcome for log in logs for r in log.receipts]
        return {
            "sessions": len(logs),
            "records": self.histories.count,
            "accepted": sum(
                s.accepted_at_s is not None for c in self.clients for s in c.records.sent
            ),
            "events": sum(len(log.events) for log in logs),
            "turns": sum(len(log.turns) for log in logs),
            "said": sum(len(log.said) for log in logs),
            "autonomous": sum(s.record.is_autonomous for log in logs for s in log.said),
            "void": receipts.count("void"),
            "outside": sum(isinstance(e, External) for log in logs for e in log.events.values()),
            "interrupted": _noted(logs, "interrupted"),
            "joined": _noted(logs, "joined"),
            "takeovers": sum(t.record.outcome == "taken_over" for log in logs for t in log.turns),
            "gave_up": _noted(logs, "gave_up"),
            "connections": sum(len(c.records.closed_at_s) for c in self.clients),
        }

    async def close(self) -> None:
        tasks = [*self._talking, *self._listening, *self._following]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.processes.stop()


def _noted(logs: list[SessionLog], code: str) -> int:
    return sum(note.code == code for log in logs for t in log.turns for note in t.record.notes)


def _is_over(log: SessionLog) -> bool:
    state = log.state
    is_idle = state.loop is None and not state.queue and not state.follow_ups
    if not is_idle or max(log.events, default=0) > state.position:
        return False
    settled = log.settled()
    return all(send.id in settled for _, send in log.sends())


def _has_all(client: Client, histories: Histories) -> bool:
    got = {received.id for received in client.records.received}
    return all(stored.record.id in got for stored in histories.of(client.records.session).said)


@contextlib.asynccontextmanager
async def running_arena(home: Path, seed: int, **environment: str) -> AsyncIterator[Arena]:
    """A broker that is watched over, and an arena with no service and nobody in it."""
    settings = settings_of(home)
    ensure_home(settings)
    settings.file.write_text(settings.file.read_text("utf-8") + AGENTS, "utf-8")
    async with running_broker(home, Nats(partitions=PARTITIONS)) as broker:
        broker.watch()
        admin = await broker.admin()
        arena = Arena(home, broker.url, admin, free_port(), seed, environment)
        arena.broker = broker
        try:
            await arena.follow()
            yield arena
        finally:
            await arena.close()
            await admin.close()


Prepare = Callable[[], Awaitable[None]]
