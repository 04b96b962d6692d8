"""One model call: the request from the session's history, the model that is asked, the budget."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import structlog

from vigil import crash
from vigil.bus.bus import BusError
from vigil.circuits import Circuits
from vigil.contracts import (
    ExternalBlock,
    Row,
    State,
    TaskBlock,
    TextBlock,
    TimerBlock,
    Usage,
)
from vigil.errors import Unavailable
from vigil.observe import metrics, spans
from vigil.observe.trace import Span
from vigil.preferences.shown import shown
from vigil.runtime import Context
from vigil.settings.sections import Model as ModelConfig
from vigil.settings.sections import Person
from vigil.subjects import SessionKey
from vigil.teams import TEAM

from ..core import Policy, speech
from ..core.draft.profile import Inquiry, Profile, TemplateRow
from ..model import KnownAtStart, ModelAnswer, ModelError, ModelRequest, Situation
from ..models import opaque
from ..models.guard import CallsInVain, guarded, unlooped
from ..policy import routed
from ..row_counts import NONE, CountedRows
from .accounts import BudgetExceeded
from .attachments import ShownFiles
from .budget import CallBudget, Reservation, estimate, with_parts
from .catalogue import Catalogue, ModelChoice
from .identity import Identities
from .ledger import KINDS, PaidCall, kinds_of
from .prompts import Prompts, StandingText, steps_left, under_way
from .shown import ShownBefore
from .token_stream import TokenStream
from .toolbox import Toolbox
from .tools import of_caller, with_facts

log = structlog.get_logger("vigil.cortex")


class Thinker:
    """Whatever a call of the model needs, shared by all sessions of a replica."""

    def __init__(
        self,
        context: Context,
        *,
        config: ModelConfig,
        catalogue: Catalogue,
        identities: Identities,
        prompts: Prompts,
        budget: CallBudget,
        toolbox: Toolbox,
        circuits: Circuits,
    ) -> None:
        self._bus, self._clock = context.bus, context.clock
        self._files = ShownFiles(context.bus)
        self._config = config
        self.catalogue = catalogue
        """Which models there are: others, once the configuration changes."""
        self._identities = identities
        self._prompts = prompts
        self._budget = budget
        self._tracer, self._counts = context.tracer, context.metrics
        self._toolbox = toolbox
        self._circuits, self._in_vain = circuits, CallsInVain()

    async def think(
        self,
        key: SessionKey,
        state: State,
        rows: tuple[Row, ...],
        *,
        person: Person,
        policy: Policy,
        known: KnownAtStart,
        shown: ShownBefore,
        parent: str,
    ) -> ModelAnswer:
        """Ask the model for the open loop of `state`.

        Args:
            shown: what the session's model was shown before.
            parent: the context of the turn.

        Raises:
            ModelError: no answer, or the budget is used up.
        """
        told = shown.rows.of(rows, self._shown)
        request = self._request(key, state, told, person, policy, known, shown.standing)
        attempt = state.attempt + (state.loop.retries if state.loop else 0)
        stream = TokenStream(self._bus.send, key.live, state.turns + 1, attempt)
        try:
            chosen = self._chosen(key, state, policy.profile, request)
            call = PaidCall.of(key, state, chosen.name, request.tier, zone=person.timezone)
            is_direct = state.loop is not None and state.loop.is_direct
            answering = partial(self._answer, request, call, chosen, stream.add, parent)
            return await unlooped(self._circuits, str(key), answering, is_direct=is_direct)
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
        situation = self._situation(key, state, person, policy, KnownAtStart())
        request = ModelRequest(
            session_key=str(key),
            system=(self._prompts.question(asked.prompt, user=key.user, **asked.values),),
            rows=tuple(
                self._prompts.rendered(r) if isinstance(r, TemplateRow) else r for r in asked.rows
            ),
            tools=asked.tools,
            max_tokens=self._max_tokens(asked.profile),
            timeout_s=self._config.timeout_s,
            total_s=self._config.answer_s,
            situation=situation,
            present=self._prompts.clock(situation),
            tier=asked.profile.tier,
            tier_reason=f"phase {asked.purpose}",
            effort=asked.profile.effort,
            purpose=asked.purpose,
            schema=asked.schema,
        )
        chosen = self._chosen(key, state, asked.profile, request)
        call = PaidCall.of(key, state, chosen.name, request.tier, zone=person.timezone)
        return await self._answer(request, call, chosen, lambda _: None, parent)

    def window_tokens(self, key: SessionKey, state: State, profile: Profile) -> int:
        """Return how many tokens the model reads at once that a session thinks with."""
        wanted = "" if state.start is None else state.start.model
        return self.catalogue.window_of(self.catalogue.model_for(key, profile, wanted).name)

    def fixed_tokens(self, key: SessionKey, state: State, person: Person, policy: Policy) -> int:
        """Return the estimate for what a request holds beside the history."""
        request = self._request(key, state, NONE, person, policy, KnownAtStart())
        return estimate(request).input_tokens

    def _chosen(
        self, key: SessionKey, state: State, profile: Profile, request: ModelRequest
    ) -> ModelChoice:
        wanted = "" if state.start is None else state.start.model
        chosen = self.catalogue.model_for(key, profile, wanted)
        until = state.fallback_until
        if until is None or until <= self._clock.now():
            return chosen
        return self.catalogue.instead_of(chosen, estimate(request).tokens)

    async def _answer(
        self,
        request: ModelRequest,
        call: PaidCall,
        chosen: ModelChoice,
        on_text: Callable[[str], None],
        parent: str,
    ) -> ModelAnswer:
        asking = partial(self._asked, request, call, chosen, on_text, parent)
        return await guarded(
            self._circuits, self._in_vain, chosen.name, request.session_key, asking
        )

    async def _asked(
        self,
        request: ModelRequest,
        call: PaidCall,
        chosen: ModelChoice,
        on_text: Callable[[str], None],
        parent: str,
    ) -> ModelAnswer:
        offered, request = request, self.catalogue.fitted(request, chosen.name)
        if chosen.is_fallback:
            request = opaque.left_out(request)
        span = self._tracer.begin(parent)
        answer: ModelAnswer | None = None
        outcome = error_type = "cancelled"
        try:
            answer = await self._files.ask(
                request, chosen, lambda shown: self._paid(shown, call, chosen, on_text)
            )
            answer = self.catalogue.took_in(chosen.name, offered, with_parts(answer, request))
            outcome = "answered"
            return opaque.of_fallback(answer) if chosen.is_fallback else answer
        except ModelError as error:
            self.catalogue.learn(chosen.name, error.limit_tokens)
            outcome = "retryable" if error.is_retryable else "failed"
            error_type = error.kind
            raise
        finally:
            self._observe(span, request, chosen, outcome, answer, error_type)

    def _observe(
        self,
        span: Span,
        request: ModelRequest,
        chosen: ModelChoice,
        outcome: str,
        answer: ModelAnswer | None,
        error_type: str,
    ) -> None:
        """Count a call that is over, and record its span."""
        usage = None if answer is None else answer.usage
        model = chosen.model.name if usage is None else usage.model
        self._counts.observe(metrics.MODEL_SECONDS, span.lasted_s, model, outcome)
        for direction, tokens in zip(KINDS, kinds_of(usage), strict=True) if usage else ():
            if tokens:
                self._counts.count(metrics.MODEL_TOKENS, model, direction, by=tokens)
        if not self._tracer.is_on:
            return
        attributes: dict[str, str | int | tuple[str, ...]] = {
            spans.GEN_AI_OPERATION: "chat",
            spans.GEN_AI_PROVIDER: chosen.provider,
            spans.GEN_AI_MODEL: model,
            spans.GEN_AI_MAX_TOKENS: request.max_tokens,
            spans.GEN_AI_STREAM: True,
            spans.GEN_AI_CONVERSATION: request.session_key,
        }
        if chosen.model.server is not None:
            attributes[spans.SERVER_ADDRESS], attributes[spans.SERVER_PORT] = chosen.model.server
        if answer is not None and usage is not None:
            cached = usage.cache_read_tokens + usage.cache_write_tokens
            attributes |= {
                spans.GEN_AI_RESPONSE_MODEL: answer.model or model,
                spans.GEN_AI_FINISH_REASONS: (answer.stop_reason,),
                spans.GEN_AI_INPUT_TOKENS: usage.input_tokens + cached,
                spans.GEN_AI_OUTPUT_TOKENS: usage.output_tokens,
            }
            if usage.cache_read_tokens:
                attributes[spans.GEN_AI_CACHE_READ] = usage.cache_read_tokens
            if usage.cache_write_tokens:
                attributes[spans.GEN_AI_CACHE_WRITE] = usage.cache_write_tokens
        error = "" if answer is not None else error_type
        self._tracer.end(span, spans.MODEL, attributes, name=f"chat {model}", error=error)

    async def _paid(
        self,
        request: ModelRequest,
        call: PaidCall,
        chosen: ModelChoice,
        on_text: Callable[[str], None],
    ) -> ModelAnswer:
        if chosen.model.is_free:
            return await chosen.model.answer(request, on_text)
        try:
            reservation = await self._budget.reserve(call, estimate(request))
        except BudgetExceeded as error:
            notice = error.notice
            raise ModelError(
                notice.text, is_retryable=False, budget_at=error.again_at, notices=(notice,)
            ) from error
        except (Unavailable, BusError) as error:
            reason = f"the budget can't be read: {error}"
            raise ModelError(reason, is_retryable=True, kind="budget") from error
        crash.point("cortex.budget.reserved")
        try:
            answer = await chosen.model.answer(request, on_text)
        except ModelError as error:
            # Whatever else failed or was cut off stays counted as reserved: never under-count.
            if error.is_refused:
                await self._settle(reservation, None)
            error.notices = reservation.notices
            raise
        crash.point("cortex.budget.answered")
        cost = await self._settle(reservation, answer.usage)
        tier, why = request.tier, request.tier_reason
        used = msgspec.structs.replace(answer.usage, tier=tier, tier_reason=why, micro_usd=cost)
        return msgspec.structs.replace(answer, usage=used, notices=reservation.notices)

    async def _settle(self, reservation: Reservation, usage: Usage | None) -> int | None:
        """Exchange what was reserved for what was used; return what that cost, if it's known."""
        try:
            return await self._budget.settle(reservation, usage)
        except (Unavailable, BusError) as error:
            log.warning("budget not settled", action="cortex.budget", error=str(error))
        return None

    def _request(
        self,
        key: SessionKey,
        state: State,
        told: CountedRows,
        person: Person,
        policy: Policy,
        known: KnownAtStart,
        standing: StandingText | None = None,
    ) -> ModelRequest:
        situation = self._situation(key, state, person, policy, known)
        offered = self._toolbox.offered(policy.profile)
        return ModelRequest(
            session_key=str(key),
            system=self._system(key, policy.profile, known),
            rows=told.rows,
            tools=of_caller(state.loop, after=with_facts(offered.shown(state.found), state)),
            max_tokens=self._max_tokens(policy.profile),
            timeout_s=self._config.timeout_s,
            total_s=self._config.answer_s,
            situation=situation,
            present=self._present(situation, policy.profile, standing),
            tier=policy.profile.tier,
            tier_reason=f"kind {policy.profile.name}",
            effort=policy.profile.effort,
            known=told,
        )

    def _max_tokens(self, profile: Profile) -> int:
        limit = self._config.max_tokens
        return min(profile.max_tokens or limit, limit)

    def _system(self, key: SessionKey, profile: Profile, known: KnownAtStart) -> tuple[str, ...]:
        if not profile.knows_person:
            return (self._prompts.question(profile.prompt),)
        identity = self._identities.load(key.agent, key.user)
        stable = self._prompts.system(
            identity, profile.prompt, is_conversation=profile.is_conversation
        )
        if known.bulletin is None:
            return stable
        return *stable, self._prompts.bulletin(known.bulletin, is_short=profile.bulletin == "short")

    def _present(
        self, situation: Situation, profile: Profile, standing: StandingText | None
    ) -> str:
        if not profile.knows_person:
            return self._prompts.clock(situation, knows_person=False)
        return self._prompts.situation(situation, standing)

    def _situation(
        self,
        key: SessionKey,
        state: State,
        person: Person,
        policy: Policy,
        known: KnownAtStart,
    ) -> Situation:
        now, is_conversation = self._clock.now(), policy.profile.is_conversation
        return Situation(
            now=now,
            timezone=person.timezone,
            language=person.language,
            user=key.user,
            agent=key.agent,
            follow_ups=state.follow_ups,
            autonomy_enabled=policy.autonomy_enabled,
            channels=policy.channels,
            route=speech.route_of(routed(policy, person), state),
            memories=known.memories,
            likes=shown(known.preferences, now, policy.preference_period, asks=is_conversation),
            letters=known.letters,
            facts=known.facts,
            under_way=under_way(state.tasks.values()),
            is_conversation=is_conversation,
            members=policy.teams.get(key.agent, ()) if key.user == TEAM else (),
            others=policy.others if is_conversation else (),
            steps_left=steps_left(state, policy.calls_max),
        )

    def _shown(self, row: Row) -> Row:
        """Put what is no word of the person's or the agent's into words."""
        match next(iter(row.blocks), None):
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
        return msgspec.structs.replace(row, blocks=(TextBlock(text=text), *row.blocks[1:]))
