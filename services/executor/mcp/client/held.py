"""Calls that a server asks something of the person for (elicitation), or of a model (sampling), by
either protocol.

By that of 2026 the call ends with what is wanted and is called again with the answer, so a restart
loses nothing. By that of 2025 the server asks while the call is open: it's held here meanwhile, and
looks to whoever called as if it were the other protocol. Those that are held end with their
connection: nobody knows then what became of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Coroutine
from typing import Any, Final

import mcp_types as types
from mcp.client.context import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT

from vigil.background.end import end_tasks
from vigil.contracts.tools import ServerAnswer

from ...tools.source import OnProgress
from .wanted import response_of

HELD_MAX: Final = 16
"""Of one server; what more of them ask is cancelled."""
HELD_S: Final = 24 * 3600.0
"""As long as requests to a person stay open, by default."""
SAMPLED_S: Final = 900.0
"""For a model: several times as long as a session that answers a server may take (120 s, with room
for who sets more in `[cortex]`). Where none answers, as a call that no loop waits for, no one says
so: its server would get no other answer for a day."""
NAME: Final = "asked"
REFUSED: Final = -1
"""The code of a refusal, in the examples of the protocol."""
NO_MODEL: Final = "no model answers that"
Sending = Callable[[ProgressFnT], Coroutine[Any, Any, Any]]
_HELD: Final = "held:"


class HeldCall:
    """One call under way."""

    def __init__(self, all_: HeldCalls, send: Sending, on_progress: OnProgress | None) -> None:
        self._all = all_
        self.on_progress = on_progress
        """Who is told how far it is: whoever waits for it now."""
        self.task = asyncio.create_task(send(self._progressed))
        self.asked: asyncio.Future[types.InputRequiredResult] = self._future()
        self.answer: asyncio.Future[types.InputResponse | None] | None = None

    @staticmethod
    def _future() -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    async def next(self) -> Any:
        """Wait for its end, or for what is wanted first. Whoever stops waiting ends it."""
        try:
            await asyncio.wait((self.task, self.asked), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._all.forget(self)
            await end_tasks(self.task)
            raise
        if self.asked.done() and not self.task.done():
            return self.asked.result()
        self._all.forget(self)
        return self.task.result()

    async def _progressed(self, progress: float, total: float | None, message: str | None) -> None:
        if self.on_progress is not None:
            await self.on_progress(progress, total, message)

    def ask(self, request: types.InputRequest, state: str) -> asyncio.Future[Any]:
        """Hand on what is wanted; return what is said to it, once it is."""
        wanted: dict[str, types.InputRequest] = {NAME: request}
        self.answer = self._future()
        self.asked.set_result(
            types.InputRequiredResult(
                result_type="input_required", input_requests=wanted, request_state=state
            )
        )
        return self.answer

    def go_on(self, result: types.InputResponse | None) -> None:
        """Give the server its answer; None: there is none."""
        answer, self.answer, self.asked = self.answer, None, self._future()
        if answer is not None and not answer.done():
            answer.set_result(result)


class HeldCalls:
    """Those of one server."""

    def __init__(self) -> None:
        self._under_way: list[HeldCall] = []
        self._held: dict[str, HeldCall] = {}

    def begin(self, send: Sending, on_progress: OnProgress | None = None) -> HeldCall:
        """Begin a call; `send` is given who is to be told how far it is."""
        made = HeldCall(self, send, on_progress)
        self._under_way.append(made)
        return made

    def is_of(self, state: str | None) -> bool:
        """Whether an answer is for a call that is, or was, held."""
        return state is not None and state.startswith(_HELD)

    def go_on(self, answered: ServerAnswer) -> HeldCall | None:
        """Give a call that is held its answer; None: it isn't any more."""
        call = self._held.pop(answered.state or "", None)
        if call is not None:
            call.go_on(response_of(answered))
        return call

    def let_go(self, state: str | None) -> None:
        """Tell the server that nobody answers."""
        if (call := self._held.pop(state or "", None)) is not None:
            call.go_on(None)

    def forget(self, call: HeldCall) -> None:
        """A call is over."""
        with contextlib.suppress(ValueError):
            self._under_way.remove(call)
        self._held = {state: one for state, one in self._held.items() if one is not call}

    async def asked(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        """Answer a server that asks the person in the middle of a call, once they did."""
        answer = await self._answer(types.ElicitRequest(params=params), HELD_S)
        if isinstance(answer, types.ElicitResult):
            return answer
        return types.ElicitResult(action="cancel")

    async def sampled(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Answer a server that asks a model in the middle of a call, once one did."""
        answer = await self._answer(types.CreateMessageRequest(params=params), SAMPLED_S)
        if isinstance(answer, types.CreateMessageResult):
            return answer
        return types.ErrorData(code=REFUSED, message=NO_MODEL)

    async def _answer(
        self, request: types.InputRequest, within_s: float
    ) -> types.InputResponse | None:
        """Hand on what a server wants, and wait for the answer; None: there is none.

        It doesn't say of which call it asks: with several under way nobody can be told what for.
        """
        # Whom nobody answered in time may have ended with nobody waiting.
        self._under_way = [call for call in self._under_way if not call.task.done()]
        free = [call for call in self._under_way if call.answer is None]
        if len(self._under_way) != 1 or not free or len(self._held) >= HELD_MAX:
            return None
        state = f"{_HELD}{secrets.token_hex(16)}"
        answer = free[0].ask(request, state)
        self._held[state] = free[0]
        try:
            async with asyncio.timeout(within_s):
                return await answer  # type: ignore[no-any-return]
        except TimeoutError:
            return None
        finally:
            self._held.pop(state, None)

    async def close(self) -> None:
        """End what is held: its connection is no more."""
        held = [call.task for call in self._held.values()]
        self._held.clear()
        await end_tasks(*held)
        self._under_way.clear()
