"""One model call: the request from the session's history, the tokens on their way, the budget."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from vigil.bus.bus import Bus, BusError
from vigil.clock import Clock
from vigil.contracts import (
    ExternalBlock,
    Memory,
    Row,
    State,
    TaskBlock,
    TextBlock,
    TimerBlock,
    Usage,
)
from vigil.errors import Unavailable
from vigil.observe import metrics, spans
from vigil.observe.metrics import Metrics
from vigil.observe.trace import Span, Tracer
from vigil.settings.sections import Model as ModelConfig
from vigil.settings.sections import Person
from vigil.subjects import SessionKey
from vigil.teams import TEAM

from ..core import Policy
from ..core.profile import Inquiry, Profile, TemplateRow
from .budget import BudgetExceeded, Reservation, TokenBudget, estimate, tokens_of
from .identity import Identities
from .model import (
    LanguageModel,
    ModelAnswer,
    ModelError,
    ModelRequest,
    Situation,
)
from .prompts import Prompts
from .toolbox import Toolbox

log = structlog.get_logger("vigil.cortex")

_AS_IT_IS: Final = ("person", "agent", "tool")
"""Sources of the rows that need no words of ours."""
TOKEN_FLUSH_S: Final = 0.04
"""Tokens are gathered this long: 25 frames a second look fluent and cost little."""


class StreamedText(msgspec.Struct, frozen=True):
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
        model: LanguageModel,
        identities: Identities,
        prompts: Prompts,
        budget: TokenBudget,
        tracer: Tracer,
        counts: Metrics,
        toolbox: Toolbox,
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._config = config
        self.model = model
        self._identities = identities
        self._prompts = prompts
        self._budget = budget
        self._tracer = tracer
        self._counts = counts
        self._toolbox = toolbox

    async def think(
        self,
        key: SessionKey,
        state: State,
        rows: tuple[Row, ...],
        *,
        person: Person,
        policy: Policy,
        memories: tuple[Memory, ...],
        parent: str,
    ) -> ModelAnswer:
        """Ask the model for the open loop of `state`; `parent` is the context of its turn.

        Raises:
            ModelError: no answer, or the budget is used up.
        """
        request = self._request(key, state, rows, person, policy, memories)
        attempt = state.attempt + (state.loop.retries if state.loop else 0)
        stream = TokenStream(self._bus.send, key.live, state.turns + 1, attempt)
        try:
            return await self._answer(request, stream.add, parent)
        finally:
            stream.close()

    async def ask(
        self,
        key: SessionKey,
        state: State,
        asked: Inquiry,
        *,
        person: Person,
        policy: Policy,
        parent: str,
    ) -> ModelAnswer:
        """Ask the model what is no step of a conversation; nobody sees its words come.

        Raises:
            ModelError: no answer, or the budget is used up.
        """
        situation = self._situation(key, state, person, policy, ())
        request = ModelRequest(
            session_key=str(key),
            system=(self._prompts.question(asked.prompt, situation, asked.values),),
            rows=tuple(
                self._prompts.told(r) if isinstance(r, TemplateRow) else r for r in asked.rows
            ),
            tools=asked.tools,
            max_tokens=self._config.max_tokens,
            timeout_s=self._config.timeout_s,
            situation=situation,
            purpose=asked.purpose,
            schema=asked.schema,
        )
        return await self._answer(request, lambda _: None, parent)

    def _rendered(self, row: Row | TemplateRow) -> Row:
        return self._prompts.told(row) if isinstance(row, TemplateRow) else row

    def fixed_tokens(self, key: SessionKey, state: State, person: Person, policy: Policy) -> int:
        """Return the estimate for what a request holds beside the history."""
        request = self._request(key, state, (), person, policy, ())
        return estimate(request) - request.max_tokens

    async def _answer(
        self, request: ModelRequest, on_text: Callable[[str], None], parent: str
    ) -> ModelAnswer:
        span = self._tracer.begin(parent)
        answer: ModelAnswer | None = None
        outcome = error_type = "cancelled"
        try:
            if self.model.is_free:
                answer = await self.model.answer(request, on_text)
            else:
                answer = await self._paid(request, on_text)
            outcome = "answered"
            return answer
        except ModelError as error:
            outcome = "retryable" if error.is_retryable else "failed"
            error_type = error.kind
            raise
        finally:
            self._tell(span, request.session_key, outcome, answer, error_type)

    def _tell(
        self, span: Span, session: str, outcome: str, answer: ModelAnswer | None, error_type: str
    ) -> None:
        """Count a call that is over, and record its span."""
        usage = None if answer is None else answer.usage
        model = self.model.name if usage is None else usage.model
        self._counts.observe(metrics.MODEL_SECONDS, span.lasted_s, model, outcome)
        for direction, tokens in _tokens(usage):
            if tokens:
                self._counts.count(metrics.MODEL_TOKENS, model, direction, by=tokens)
        if not self._tracer.is_on:
            return
        attributes: dict[str, str | int | tuple[str, ...]] = {
            spans.GEN_AI_OPERATION: "chat",
            spans.GEN_AI_PROVIDER: "vigil" if self.model.is_free else "anthropic",
            spans.GEN_AI_MODEL: model,
            spans.GEN_AI_CONVERSATION: session,
        }
        if self.model.server is not None:
            attributes[spans.SERVER_ADDRESS], attributes[spans.SERVER_PORT] = self.model.server
        if answer is not None and usage is not None:
            cached = usage.cache_read_tokens + usage.cache_write_tokens
            attributes |= {
                spans.GEN_AI_RESPONSE_MODEL: answer.model or model,
                spans.GEN_AI_FINISH_REASONS: (answer.stop_reason,),
                spans.GEN_AI_INPUT_TOKENS: usage.input_tokens + cached,
                spans.GEN_AI_OUTPUT_TOKENS: usage.output_tokens,
            }
            if cached:
                attributes |= {
                    spans.GEN_AI_CACHE_READ: usage.cache_read_tokens,
                    spans.GEN_AI_CACHE_WRITE: usage.cache_write_tokens,
                }
        error = "" if answer is not None else error_type
        self._tracer.end(span, spans.MODEL, attributes, name=f"chat {model}", error=error)

    async def _paid(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        try:
            user = SessionKey.parse(request.session_key).user
            reservation = await self._budget.reserve(estimate(request), user)
        except BudgetExceeded as error:
            raise ModelError(
                error.reason, is_retryable=False, is_budget=True, kind="budget"
            ) from error
        except (Unavailable, BusError) as error:
            raise ModelError(f"the budget can't be read: {error}", is_retryable=True) from error
        try:
            answer = await self.model.answer(request, on_text)
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
        self,
        key: SessionKey,
        state: State,
        rows: tuple[Row, ...],
        person: Person,
        policy: Policy,
        memories: tuple[Memory, ...],
    ) -> ModelRequest:
        situation = self._situation(key, state, person, policy, memories)
        return ModelRequest(
            session_key=str(key),
            system=self._system(key, situation, policy.profile),
            rows=tuple([row if _is_as_it_is(row) else self._shown(row) for row in rows]),
            tools=self._toolbox.specs(policy.profile),
            max_tokens=self._config.max_tokens,
            timeout_s=self._config.timeout_s,
            situation=situation,
            tier=policy.profile.tier,
        )

    def _system(self, key: SessionKey, situation: Situation, profile: Profile) -> tuple[str, ...]:
        if not profile.knows_person:
            return (self._prompts.question(profile.prompt, situation, {}),)
        identity = self._identities.load(key.agent, key.user)
        return self._prompts.system(identity, situation, profile.prompt)

    def _situation(
        self,
        key: SessionKey,
        state: State,
        person: Person,
        policy: Policy,
        memories: tuple[Memory, ...],
    ) -> Situation:
        return Situation(
            now=self._clock.now(),
            timezone=person.timezone,
            language=person.language,
            user=key.user,
            agent=key.agent,
            follow_ups=state.follow_ups,
            autonomy_enabled=policy.autonomy_enabled,
            channels=policy.channels,
            route=person.channel,
            memories=memories,
            under_way=_under_way(state),
            is_conversation=policy.profile.is_conversation,
            members=policy.teams.get(key.agent, ()) if key.user == TEAM else (),
        )

    def _shown(self, row: Row) -> Row:
        """Put what is no word of the person's or the agent's into words."""
        match row.blocks[0]:
            case TimerBlock(timer_id=timer_id, follow_up=follow_up):
                text = self._prompts.timer_row(follow_up, timer_id, row.at)
            case ExternalBlock() as block:
                text = self._prompts.external_row(block, row.at)
            case TaskBlock() as block:
                text = self._prompts.result_row(block)
            case TextBlock(text=said) if row.by:
                text = f"[{row.by}] {said}"
            case TextBlock(text=task) if row.source == "task":
                text = self._prompts.task_row(task)
            case TextBlock(text=summary) if row.source == "system":
                text = self._prompts.summary_row(summary)
            case _:
                return row
        return msgspec.structs.replace(row, blocks=(TextBlock(text=text),))


def _is_as_it_is(row: Row) -> bool:
    return row.source in _AS_IT_IS and not row.by


def _under_way(state: State) -> tuple[str, ...]:
    """Name what the session has under way and doesn't wait for."""
    tasks = state.tasks.values()
    return tuple(f"{t.tool}: {t.title}" for t in tasks if not (t.is_awaited or t.told_seq))


def _tokens(usage: Usage | None) -> tuple[tuple[str, int], ...]:
    if usage is None:
        return ()
    return (
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cache_read", usage.cache_read_tokens),
        ("cache_write", usage.cache_write_tokens),
    )


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
        token = StreamedText(self._turn, self._attempt, "".join(self._text))
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
