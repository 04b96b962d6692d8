"""One model call: the request from the session's history, the tokens on their way, the budget."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from vigil.bus import Bus, BusError
from vigil.clock import Clock
from vigil.config import Model as ModelConfig
from vigil.contracts import Row, State, TextBlock, TimerBlock
from vigil.errors import Unavailable
from vigil.subjects import SessionKey

from .budget import Budget, BudgetExceeded, Reservation, estimate, tokens_of
from .identity import Identities
from .model import Model, ModelAnswer, ModelError, ModelRequest, Situation
from .prompting import Prompts
from .tools import SPECS

log = structlog.get_logger("vigil.cortex")

TOKEN_FLUSH_S: Final = 0.04
"""Tokens are gathered this long: 25 frames a second look fluent and cost little."""


class Token(msgspec.Struct, frozen=True):
    """A piece of an answer in the making, on `live.>`; never stored."""

    turn: int
    attempt: int
    text: str


class Thinker:
    """Whatever a call of the model needs, shared by all sessions of a replica."""

    def __init__(
        self,
        *,
        bus: Bus,
        clock: Clock,
        config: ModelConfig,
        model: Model,
        identities: Identities,
        prompts: Prompts,
        budget: Budget,
        autonomy_enabled: bool,
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._config = config
        self.model = model
        self._identities = identities
        self._prompts = prompts
        self._budget = budget
        self._autonomy_enabled = autonomy_enabled

    async def think(
        self,
        key: SessionKey,
        state: State,
        rows: tuple[Row, ...],
        timezone: str,
    ) -> ModelAnswer:
        """Ask the model for the open loop of `state`.

        Raises:
            ModelError: no answer, or the budget is used up.
        """
        request = self._request(key, state, rows, timezone)
        attempt = state.attempt + (state.loop.retries if state.loop else 0)
        stream = TokenStream(self._bus.send, key.live, state.turns + 1, attempt)
        try:
            if self.model.is_free:
                return await self.model.answer(request, stream.add)
            return await self._paid(request, stream)
        finally:
            stream.close()

    async def _paid(self, request: ModelRequest, stream: TokenStream) -> ModelAnswer:
        try:
            reservation = await self._budget.reserve(estimate(request))
        except BudgetExceeded as error:
            raise ModelError(error.reason, is_retryable=False) from error
        except (Unavailable, BusError) as error:
            raise ModelError(f"the budget can't be read: {error}", is_retryable=True) from error
        try:
            answer = await self.model.answer(request, stream.add)
        except ModelError as error:
            # Whatever else failed or was cut off stays counted as reserved: never under-count.
            if error.is_refused:
                await self._settle(reservation, 0)
            raise
        await self._settle(reservation, tokens_of(answer.usage))
        return answer

    async def _settle(self, reservation: Reservation, tokens: int) -> None:
        """Exchange what was reserved for what was used; without an answer it stays counted."""
        try:
            await self._budget.settle(reservation, tokens)
        except Unavailable as error:
            log.warning("budget not settled", action="cortex.budget", error=str(error))

    def _request(
        self, key: SessionKey, state: State, rows: tuple[Row, ...], timezone: str
    ) -> ModelRequest:
        situation = Situation(
            now=self._clock.now(),
            timezone=timezone,
            user=key.user,
            agent=key.agent,
            follow_ups=state.follow_ups,
            autonomy_enabled=self._autonomy_enabled,
        )
        identity = self._identities.load(key.agent, key.user)
        return ModelRequest(
            session_key=str(key),
            system=self._prompts.system(identity, situation),
            rows=tuple(self._shown(row) for row in rows),
            tools=SPECS,
            max_tokens=self._config.max_tokens,
            timeout_s=self._config.timeout_s,
            situation=situation,
        )

    def _shown(self, row: Row) -> Row:
        """Put a timer that fired into words; everything else stands as it is."""
        block = row.blocks[0]
        if not isinstance(block, TimerBlock):
            return row
        text = self._prompts.timer_row(block.follow_up, block.timer_id, row.at)
        return msgspec.structs.replace(row, blocks=(TextBlock(text=text),))


class TokenStream:
    """Gathers text for a moment, then publishes it to whoever watches the session."""

    def __init__(
        self,
        send: Callable[[str, bytes], Awaitable[None]],
        subject: str,
        turn: int,
        attempt: int,
    ) -> None:
        self._send = send
        self._subject = subject
        self._turn = turn
        self._attempt = attempt
        self._text: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, text: str) -> None:
        self._text.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOKEN_FLUSH_S, self._flush)

    def _flush(self) -> None:
        self._timer = None
        token = Token(self._turn, self._attempt, "".join(self._text))
        self._text.clear()
        task = asyncio.ensure_future(self._publish(msgspec.json.encode(token)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _publish(self, data: bytes) -> None:
        # Tokens are a courtesy: the committed message replaces them, so a lost one is no loss.
        with contextlib.suppress(Unavailable):
            await self._send(self._subject, data)

    def close(self) -> None:
        """Drop what is left: the committed message is on its way."""
        if self._timer is not None:
            self._timer.cancel()
