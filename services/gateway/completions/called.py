"""What a program tells of the calls of its own tools: once, and only while they are waited for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from vigil.contracts import ControlPayload, Loop, TextBlock, ToolUseBlock, Turn, Usage, canonical
from vigil.contracts.calls.caller import CallerResult
from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal
from vigil.subjects import Scope, SessionKey
from vigil.texts import excerpt

from ..http.decide import Exchange, keyed_event_id
from ..http.wire import Accepted
from ..insight.shown import read_turn
from ..state.edge import Edge
from .lent import AskedCall, GivenResult, asked_call, check_complete, effect_of
from .past import CallPlace, Past
from .wire import CompletionUsage

RESULTS_LENGTH_MAX: Final = 128 * 1024
"""Characters of all results of an answer; the model is shown less of each."""
UNKNOWN: Final = "no call of this agent's has this id"


class CallOver(InvalidInput):
    """Nobody waits for the call any more."""

    def __init__(self, field: str) -> None:
        super().__init__(
            field,
            "isn't waited for any more: it was answered before, the person wrote again, or it took "
            "too long. Ask once more without it",
        )


class GivenResults(NamedTuple):
    """What a program told, as it is stored."""

    session: SessionKey
    place: CallPlace
    event_id: str
    """Of what it told."""
    seq: int

    @property
    def followed(self) -> Accepted:
        """Return what goes on: the answer to the message, from there on."""
        return Accepted(event_id=self.place.event_id, seq=self.seq)


class CallerCalls:
    """The calls of one person's programs with an agent."""

    def __init__(self, edge: Edge, caller: Principal, whose: Scope, past: Past) -> None:
        self._edge = edge
        self._user = caller.user
        self._whose = whose
        self._past = past

    async def give(self, results: Sequence[GivenResult], parent: str | None) -> GivenResults:
        """Store what a program tells of the calls of an answer; the same again stores nothing.

        Raises:
            InvalidInput: a call isn't there, isn't waited for any more, or was answered otherwise.
        """
        place = await self._place(results)
        session = SessionKey(self._whose.owner, self._whose.agent, place.thread)
        event_id = keyed_event_id(self._user, str(session), f"v1 results {_digest(results)}")
        length_max = RESULTS_LENGTH_MAX // len(results)
        told = tuple(
            CallerResult(
                call_id=effect_of(one.call_id),
                content=excerpt.in_characters(one.text, length_max),
            )
            for one in results
        )
        order = ControlPayload(op="results", results=told)
        intake = self._edge.intake

        async def store() -> Accepted:
            await self._check_open(session, place, results)
            return await intake.control(session, order, event_id=event_id, parent=parent)

        stored = await intake.order_once(session, event_id, store)
        return GivenResults(session, place, event_id, stored.seq)

    async def _place(self, results: Sequence[GivenResult]) -> CallPlace:
        places = []
        for one in results:
            is_ours = bool(effect_of(one.call_id))
            place = await self._past.call(self._whose, one.call_id) if is_ours else None
            if place is None:
                raise InvalidInput(one.field, UNKNOWN)
            places.append(place)
        check_complete(results, places[0].calls)
        return places[0]

    async def _check_open(
        self, session: SessionKey, place: CallPlace, results: Sequence[GivenResult]
    ) -> None:
        bus = self._edge.bus
        newest = await bus.get_last(session.stream, session.turns)
        turn = None if newest is None else read_turn(newest)
        open_ = set[str]() if turn is None else _open_in(turn.state.loop)
        for one in results:
            if effect_of(one.call_id) not in open_:
                # The same request once more is another one, with calls that are waited for.
                await self._past.note_answered(self._whose, place.request, place.count + 1)
                raise CallOver(one.field)


def _digest(results: Sequence[GivenResult]) -> str:
    said = canonical(sorted((one.call_id, one.text) for one in results))
    return hashlib.sha256(said).hexdigest()[:32]


def _open_in(loop: Loop | None) -> set[str]:
    waiting = None if loop is None else loop.waiting
    return (
        set() if waiting is None else {c.effect_id for c in waiting.calls if c.service == "caller"}
    )


def asked_by(turn: Turn, exchange: Exchange) -> Iterator[AskedCall]:
    """Return what a turn of an exchange has its program run."""
    loop = turn.state.loop
    if loop is None or loop.waiting is None or not exchange.has(loop.cause.id):
        return
    blocks = (block for row in turn.rows for block in row.blocks)
    uses = {block.id: block for block in blocks if isinstance(block, ToolUseBlock)}
    for call in loop.waiting.calls:
        if call.service == "caller" and call.tool_use_id in uses:
            yield asked_call(call.effect_id, call.tool, uses[call.tool_use_id].input)


def words_of(turn: Turn) -> str:
    """Return what the model wrote in a turn beside its calls."""
    blocks = (block for row in turn.rows if row.role == "assistant" for block in row.blocks)
    return "".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()


def counted(before: CompletionUsage, usage: Sequence[Usage]) -> CompletionUsage:
    """Return what an answer took, with the model calls of one more turn."""
    out = sum(one.output_tokens for one in usage)
    all_ = sum(one.tokens for one in usage)
    return CompletionUsage(
        prompt_tokens=before.prompt_tokens + all_ - out,
        completion_tokens=before.completion_tokens + out,
        total_tokens=before.total_tokens + all_,
    )
