"""Answers the scheduler what has changed of what is watched (LOOPS L-3).

Each kind is a module beside this one. Nothing is kept here: what was seen goes back with the
answer, and the next question brings it. What can't be seen, and whether the person is told of it,
is decided here; what a change leads to is the scheduler's.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Final, assert_never

from msgspec.structs import replace

from vigil import __version__
from vigil.bus.micro import Refusal, Request, Rpc, serving
from vigil.contracts import ToldPayload
from vigil.contracts import encode as encode_event
from vigil.contracts.board import (
    FactFill,
    LastSeen,
    WatchedCommand,
    WatchedFeed,
    WatchedFiles,
    WatchedTool,
    WatchedUrl,
)
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.facts.observed import Observation
from vigil.net.client import FAILURES, why_failed
from vigil.runtime import Context
from vigil.subjects import SessionKey, token_of
from vigil.timetable.probe import (
    CONCURRENCY_MAX,
    EXECUTOR_PROBE,
    FAILURES_TOLD,
    PROBE_TIMEOUT_S,
    ProbeAnswer,
    ProbeQuestion,
    decode_question,
    encode,
    is_of,
)
from vigil.trust.kept import TrustedSources
from vigil.trust.sources import named
from vigil.watching.watched import NOBODY, trusts, what_of

from .. import work
from ..board.fact_notifications import FactNotifier
from ..board.facts import FactStore
from ..board.receivers import called, channel_of, homes_for, reaches_one
from ..board.slots import WHAT
from ..builtin import Builtin
from ..places import SharedPlaces, part_of
from ..tools.registry import Registry
from . import answer, command, feed, files, page
from .page import AnsweredOtherwise
from .result import ProbeResult

PROBLEM_LENGTH_MAX: Final = 300
PLACE_S: Final = 25.0
"""How long a look at files or a command waits for others like it."""


class Watcher:
    """Answers what the scheduler asks of watchers."""

    def __init__(
        self,
        context: Context,
        own: Builtin,
        registry: Registry,
        is_erasing: Callable[[str], bool],
        trusted: TrustedSources | None = None,
    ) -> None:
        self._trusted = trusted or TrustedSources()
        self._bus = context.bus
        self._clock = context.clock
        self._config = context.settings.config
        self._instance = context.instance
        self._own = own
        self._registry = registry
        self._is_erasing = is_erasing
        places = self._config.executor.calls_at_once_max
        part = part_of(places, self._config.executor.calls_at_once_per_user)
        self._places = SharedPlaces(places, part)
        self._facts, self._notifier = FactStore(context), FactNotifier(context)
        self._probes: dict[asyncio.Task[tuple[ProbeAnswer, Observation]], str] = {}
        """Those at work, with whose they are."""

    @contextlib.asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Answer for as long as the block lasts; of several replicas, one does."""
        endpoint = Rpc(name="probe", subject=EXECUTOR_PROBE, handle=self._answer)
        async with serving(
            self._bus,
            [endpoint],
            name=work.SERVICE,
            version=__version__,
            description="Looks at what is watched.",
            instance=self._instance,
            concurrency_max=CONCURRENCY_MAX,
        ):
            yield

    async def erased(self) -> None:
        """End the looks for people who are being erased."""
        theirs = [task for task, user in self._probes.items() if self._is_erasing(user)]
        for task in theirs:
            task.cancel()
        if theirs:
            await asyncio.wait(theirs)

    async def _answer(self, asked: Request) -> bytes:
        try:
            question = decode_question(asked.data)
            user = SessionKey.parse(question.session).user
            if self._is_erasing(user):
                raise Refusal(409, "they are being erased", b"")
            probed, observation = await self._observe(question, user)
            probed = replace(probed, facts=await self._take_facts(question, observation))
            await self._notify(question, probed)
        except InvalidInput as error:
            raise Refusal(422, str(error), b"") from error
        return encode(probed)

    async def _take_facts(
        self, question: ProbeQuestion, observation: Observation
    ) -> FactFill | None:
        """Take the facts that a look tells, and tell of them, as of a run's; one by hand tells
        none. Raises: Unavailable, InvalidInput."""
        key, slot = SessionKey.parse(question.session), question.slot
        if slot.is_by_hand:
            return None
        known = await self._facts.take_observed(key, slot, question.looked, observation)
        if known is None or known.newest is None:
            return None
        if reaches_one(self._config, key, slot):
            await self._notifier.notify(key, known.newest.cause, slot, known, is_told=False)
        return known.newest

    async def _observe(self, question: ProbeQuestion, user: str) -> tuple[ProbeAnswer, Observation]:
        """Look, so that it can be ended. Raises: Refusal, InvalidInput."""
        task = asyncio.create_task(self.observe(question))
        self._probes[task] = user
        try:
            await asyncio.wait((task,))
        finally:
            if task.cancel():
                await asyncio.wait((task,))
            del self._probes[task]
        if task.cancelled():
            raise Refusal(409, "they are being erased", b"")
        return task.result()

    async def probe(self, question: ProbeQuestion) -> ProbeAnswer:
        """Look at what is watched; whatever goes wrong is a problem of the answer.

        Raises:
            Refusal: too many look at the same time.
            InvalidInput: there is no such session.
        """
        return (await self.observe(question))[0]

    async def observe(self, question: ProbeQuestion) -> tuple[ProbeAnswer, Observation]:
        """Return what was seen, and what facts may be made of. Raises: as `probe`."""
        status = 0
        before = question.seen if is_of(question.seen, question.watch) else None
        try:
            found = await self._result(question, before)
        except TimeoutError:
            problem = "no whole answer in time"
        except zlib.error as error:
            problem = f"it can't be unpacked: {error}"
        except InvalidInput as error:
            problem = f"the {error.field} {error.reason}"
            status = error.status if isinstance(error, AnsweredOtherwise) else 0
        except Unavailable as error:
            problem = str(error)
        except FAILURES as error:
            problem = why_failed(error)
        else:
            is_trusted = not found.is_tainted and self._trusts(question, is_moved=found.is_moved)
            seen = ProbeAnswer(seen=found.seen, change=found.change, is_trusted=is_trusted)
            return seen, found.observation
        problem = self._own.fetcher.hidden(problem)[:PROBLEM_LENGTH_MAX]
        failed = ProbeAnswer(seen=LastSeen(what=what_of(question.watch)), problem=problem)
        return failed, Observation(works=False, status=status)

    async def _result(self, question: ProbeQuestion, before: LastSeen | None) -> ProbeResult:
        """Look by what kind it is. Raises: Refusal, and what `probe` tells in words."""
        key, watch = SessionKey.parse(question.session), question.watch
        if isinstance(watch, WatchedCommand | WatchedTool) and not question.slot.is_ordered:
            raise InvalidInput("watch", NOBODY)
        async with contextlib.AsyncExitStack() as stack:
            if isinstance(watch, WatchedCommand | WatchedFiles):
                await self._take_place(stack, key)
            await stack.enter_async_context(asyncio.timeout(PROBE_TIMEOUT_S))
            match watch:
                case WatchedUrl():
                    return await page.probe(self._own.fetcher, key.kind, watch, before)
                case WatchedFeed():
                    return await feed.probe(self._own.fetcher, key.kind, watch, before)
                case WatchedFiles():
                    workspace = await self._own.open_workspace(key.scope)
                    return await asyncio.to_thread(files.probe, workspace, watch, before)
                case WatchedCommand():
                    if self._own.commands is None:
                        raise Unavailable(f"not run: {self._own.shelf.problem}")
                    workspace = await self._own.open_workspace(key.scope)
                    return await command.probe(self._own.commands, workspace, watch, before)
                case WatchedTool():
                    return await answer.probe(
                        self._registry, key, watch, before, self._clock.now(), self._trusted
                    )
                case _:
                    assert_never(watch)

    def _trusts(self, question: ProbeQuestion, *, is_moved: bool) -> bool:
        """Whether what is seen there is trusted by configuration, or by its owner, who trusts no
        more than the address itself; a tool's answer was told so."""
        if isinstance(question.watch, WatchedTool):
            return True
        config, whose = self._config, SessionKey.parse(question.session).scope
        if not is_moved and self._trusted.has(whose, named(question.watch)):
            return True
        return trusts(config.watch.values(), config.teams, whose, question.watch)

    async def _take_place(self, stack: contextlib.AsyncExitStack, key: SessionKey) -> None:
        """Raises: Refusal, there is none: it is asked again."""
        try:
            async with asyncio.timeout(PLACE_S):
                await stack.enter_async_context(self._places.place(key.user))
        except TimeoutError:
            raise Refusal(503, "too many look at the same time", b"") from None

    async def _notify(self, question: ProbeQuestion, probed: ProbeAnswer) -> None:
        """Tell the person that it doesn't work, or does again."""
        key, slot = SessionKey.parse(question.session), question.slot
        is_for_one = reaches_one(self._config, key, slot)
        payload = payload_of(question, probed, is_for_one=is_for_one)
        if payload is None:
            return
        name = f"watch-{token_of(slot.row, str(question.after), payload.text[-20:])}"
        for home in homes_for(self._config, key, slot):
            event = work.notification_of(home, name, payload, now=self._clock.now())
            with contextlib.suppress(WrongLastSequence):  # told before
                await self._bus.publish(
                    home.in_event(f"told.{name}"), encode_event(event), expect=0
                )


def payload_of(
    question: ProbeQuestion, probed: ProbeAnswer, *, is_for_one: bool
) -> ToldPayload | None:
    """Return what the person is told of a look; None: nothing. What was said there isn't in it.

    Args:
        is_for_one: as `reaches_one` says.
    """
    slot, seen = question.slot, question.seen
    if slot.is_by_hand:
        return None  # the run tells
    failures = 0 if seen is None or seen.what != what_of(question.watch) else seen.failures
    row = called(slot, is_for_one=is_for_one)
    where = f"(`vigil cron history {slot.row[:8]}`)"
    if probed.problem and failures + 1 == FAILURES_TOLD:
        text = f"The watcher {row!r} couldn't look {FAILURES_TOLD} times {where}."
        text += " It goes on trying."
    elif not probed.problem and failures >= FAILURES_TOLD:
        text = f"The watcher {row!r} works again."
    else:
        return None
    return ToldPayload(
        origin=question.session,
        text=text,
        what=WHAT,
        title=row,
        is_ordered=slot.is_ordered,
        channel=channel_of(slot),
    )
