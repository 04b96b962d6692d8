"""The channels that look for themselves what people write, each on one replica at a time.

By a lease: the others stand by. It only saves work: what is heard twice is stored once, and how far
was read is compared when it's stored.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, Final

import msgspec
import structlog

from vigil.bus.lease import Lease, Leases
from vigil.channels import report
from vigil.channels.contract import DeliveryReport, Inbound, Listener
from vigil.channels.report import ChannelReport, ReportTaken
from vigil.contracts import Attachment
from vigil.errors import InvalidInput, Unavailable, VigilError
from vigil.runtime import Context
from vigil.subjects import SessionKey, token_of
from vigil.teams import owner_of

from ..http.problem import Problem
from ..state.edge import Edge
from ..work import dead
from . import channels
from .live_answers import writing

log = structlog.get_logger("vigil.gateway")

BUSY_S: Final = 2.0
"""After which what can't be stored now is tried again."""
TEXT_ROOM: Final = 512
"""Bytes of a message that are left for what the gateway says of it."""
LATER: Final = (429, 503)
"""What a refusal has that is of the moment."""


class Listening:
    """Runs the listeners of one replica, each while it has the lease."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        context = edge.context
        self._leases = Leases(
            context.bus, context.instance, replicas=context.settings.config.nats.replicas
        )

    async def run(self) -> None:
        """Listen until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, listener in self._edge.listeners.items():
                group.create_task(self._stand_by(name, listener), name=f"gateway-hear-{name}")
            await asyncio.Event().wait()

    async def _stand_by(self, name: str, listener: Listener) -> None:
        facts = _Facts(self._edge.context, name)

        async def hear(lease: Lease) -> None:
            ear = _GatewayEar(self._edge, name, facts)
            try:
                await lease.held(listener.listen(ear), name=f"gateway-listen-{name}")
            finally:
                facts.clear()

        def failed(error: Exception) -> None:
            told = {"channel": name, "error": repr(error)}
            if isinstance(error, VigilError):
                log.info("hears again", action="gateway.hears", **told)
            else:  # a kind of channel need not be ours
                log.error("listener failed", action="gateway.hears_failed", **told)

        await self._leases.whenever_free(f"channel.{token_of('channel', name)}", hear, failed)


class _Facts:
    """What the health of this replica tells of a channel."""

    def __init__(self, context: Context, name: str) -> None:
        self._context = context
        self._name = name
        self._shown: tuple[str, str, Mapping[str, int]] | None = None
        """What the listener showed last."""

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Tell at the end what the listener showed last, if it was told that it waits."""
        shown = self._shown
        try:
            yield
        finally:
            if shown is not None and self._is_waiting:
                self.set(*shown)

    def wait(self, reason: str) -> None:
        """Tell that what was heard can't be stored now."""
        *_, counts = self._shown or ("", "", {})
        self._report("waiting", reason, counts)

    @property
    def _is_waiting(self) -> bool:
        told = self._context.facts.get("hears", {}).get(self._name, {})
        return bool(told.get("state") == "waiting")

    def set(self, state: str, problem: str, counts: Mapping[str, int]) -> None:
        self._shown = state, problem, counts
        self._report(state, problem, counts)

    def _report(self, state: str, problem: str, counts: Mapping[str, int]) -> None:
        told: dict[str, Any] = {"state": state, "problem": problem, **counts}
        self._context.facts.setdefault("hears", {})[self._name] = told
        about = f"channel {self._name}"
        if problem:
            self._context.warnings[about] = f"{about}: {problem}"
        else:
            self._context.warnings.pop(about, None)

    def clear(self) -> None:
        self._shown = None
        self._context.facts.get("hears", {}).pop(self._name, None)
        self._context.warnings.pop(f"channel {self._name}", None)


class _GatewayEar:
    """Stores what a listener hears (:class:`vigil.channels.contract.Ear`)."""

    def __init__(self, edge: Edge, name: str, facts: _Facts) -> None:
        self._edge = edge
        self._name = name
        self._facts = facts
        self.text_bytes_max = edge.config.text_bytes_max - TEXT_ROOM
        self.file_bytes_max = edge.config.attachment_bytes_max
        self.hears_speech = edge.transcriber is not None

    async def hear(self, heard: Inbound) -> None:
        """Store it. What can't be stored now waits here, and all behind it: who listens anew asks
        the other side again and again."""
        with self._facts.kept():
            while (reason := await self._taken(heard)) is not None:
                self._facts.wait(reason)
                await asyncio.sleep(BUSY_S)

    async def _taken(self, heard: Inbound) -> str | None:
        """Take it in; return why it has to wait, or None. Raises: InvalidInput, Unavailable."""
        try:
            await channels.take(self._edge, self._name, heard, None)
        except InvalidInput as error:
            if error.field != "id":  # else it's stored already, if read otherwise by now
                raise
        except Problem as error:
            if error.status in LATER:
                return error.detail
            raise InvalidInput("session", error.detail) from error
        return None

    async def writing(self, user: str, agent: str, thread: str) -> AsyncGenerator[str]:
        if owner_of(user, agent, self._edge.teams) != user:
            return  # others talk there, too: what they are answered isn't theirs
        home = self._edge.context.settings.config.person_of(user).home_thread
        session = SessionKey.of(user, agent, thread or home)
        async with contextlib.aclosing(writing(self._edge, session)) as states:
            async for one in states:
                yield one

    async def check_file(self, user: str, file: Attachment) -> None:
        await self._edge.quota.check(user, file)

    async def words_of(self, user: str, sound: bytes) -> str:
        edge = self._edge
        if edge.transcriber is None:
            raise InvalidInput("file", "isn't understood here: [speech] isn't set")
        person = edge.switches.person(user, edge.context.settings.config.person_of(user))
        return await edge.transcriber.words(sound, person.language)

    async def settle(
        self, user: str, agent: str, thread: str, effect_id: str, delivery: DeliveryReport
    ) -> None:
        session = SessionKey.of(owner_of(user, agent, self._edge.teams), agent, thread)
        question = ChannelReport(
            channel=self._name,
            session_key=str(session),
            effect_id=effect_id,
            is_delivered=delivery.is_delivered,
            reason=delivery.reason,
        )
        answer = await self._edge.bus.ask(
            report.SUBJECT, msgspec.json.encode(question), timeout=report.ANSWER_TIMEOUT_S
        )
        taken: ReportTaken = report.decode_answer(answer.data)
        if taken.outcome == "later":
            await asyncio.sleep(BUSY_S)
            raise Unavailable("delivery can't store what became of a message")
        if taken.letter_id:
            by = f"channel:{self._name}"
            await dead.lay_aside(self._edge, session, taken.letter_id, by)

    def show(self, state: str, problem: str, counts: Mapping[str, int]) -> None:
        self._facts.set(state, problem, counts)
