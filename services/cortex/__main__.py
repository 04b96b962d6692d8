"""The cortex: thought. Opens sessions, decides, calls the model, commits turns.

It carries out no effect; the scheduler and delivery read those from the turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from vigil import runtime
from vigil.bus.lease import Leases
from vigil.memory.client import MemoryClient
from vigil.observe import metrics
from vigil.runtime import Context
from vigil.settings.config import Config
from vigil.settings.switches import Switches
from vigil.subjects import SessionKey

from . import models
from .core import Policy
from .core.policy import AUTHORITIES
from .core.profiles import Profile, profile_of
from .session.engine import Engine
from .session.session import Session
from .signals import Projector
from .thought.budget import Budget
from .thought.identity import Identities
from .thought.prompts import Prompts
from .thought.recollector import Recollector
from .thought.thinker import Thinker
from .thought.toolbox import Toolbox


def policy_of(config: Config, key: SessionKey) -> Policy:
    """Return the core's policy in a session, as configured."""
    agent = config.agent_of(key.agent)
    profile = _profile(config, key)
    return Policy(
        autonomy_enabled=config.autonomy.enabled,
        max_consecutive=config.autonomy.max_consecutive,
        cooldown_ms=config.autonomy.cooldown_ms,
        ordered_per_hour=config.autonomy.ordered_per_hour,
        clear_policy=config.autonomy.clear_policy,
        follow_ups_max=config.autonomy.follow_ups_max,
        calls_max=profile.calls_max,
        profile=profile,
        authority=min(agent.authority, config.autonomy.authority_max, key=AUTHORITIES.index),
        depth_max=config.sessions.depth_max,
        fan_out_max=config.sessions.fan_out_max,
        status_every_s=config.sessions.status_every_s,
        timeouts_s={
            "branch": config.sessions.branch_timeout_s,
            "worker": config.sessions.worker_timeout_s,
        },
        approval_expires_s=config.approvals.expires_s,
        approvals_max=config.approvals.open_max,
        steps_max=config.jobs.steps_max,
        note_days=config.jobs.note_days,
        tool_timeout_s=config.model.tool_timeout_s,
        result_length_max=min(Policy().result_length_max, config.model.context_tokens // 5),
        retries_max=config.model.retries_max,
        retry_base_s=config.model.retry_base_s,
        retry_cap_s=config.model.retry_cap_s,
        queue_max=config.sessions.queue_max,
        pause_s=config.memory.pause_s,
        double_text=agent.double_text,
        coalesce_ms=agent.coalesce_ms,
        channels=tuple(sorted(config.channels)),
        route=config.person_of(key.user).channel,
    )


def _profile(config: Config, key: SessionKey) -> Profile:
    """Return the session's row of the table, with what is configured over its defaults."""
    profile = profile_of(key.kind)
    if key.kind != "channel":
        return profile
    return msgspec.structs.replace(
        profile,
        calls_max=config.model.calls_max,
        children_max=config.sessions.children_max,
    )


async def serve(context: Context) -> None:
    """Run the cortex until cancelled."""
    settings, config = context.settings, context.settings.config
    model = models.choose(settings)
    context.facts["model"] = model.name
    switches = await Switches.watch(context.bus)
    toolbox = await Toolbox.watch(context.bus)
    identities = Identities(settings.agents, context.clock)
    identities.ensure()
    budget = Budget(
        context.bus,
        config.model.daily_tokens,
        context.clock,
        share_per_user=config.model.daily_share_per_user,
    )
    thinker = Thinker(
        bus=context.bus,
        clock=context.clock,
        config=config.model,
        model=model,
        identities=identities,
        prompts=Prompts(),
        budget=budget,
        tracer=context.tracer,
        counts=context.metrics,
        toolbox=toolbox,
    )
    recollector = Recollector(
        memory=MemoryClient(context.bus),
        config=config,
        clock=context.clock,
        counts=context.metrics,
    )
    careful = asyncio.Lock()

    def open_session(key: SessionKey, on_rest: Callable[[], None]) -> Session:
        return Session(
            key,
            bus=context.bus,
            clock=context.clock,
            new_id=context.new_id,
            thinker=thinker,
            recollector=recollector,
            policy=policy_of(config, key),
            switches=switches,
            person=config.person_of(key.user),
            history_rows=config.model.history_rows,
            context_tokens=config.model.context_tokens,
            idle_release_s=config.sessions.idle_release_s,
            careful=careful,
            tracer=context.tracer,
            counts=context.metrics,
            toolbox=toolbox,
            on_rest=on_rest,
        )

    engine = Engine(
        bus=context.bus,
        leases=Leases(
            context.bus, context.instance, replicas=context.settings.config.nats.replicas
        ),
        open_session=open_session,
        sessions_max=config.sessions.concurrency_max,
        busy_per_user_max=config.sessions.busy_per_user_max,
        is_erasing=switches.is_erasing,
    )
    switches.on_change(engine.close_erased)
    context.metrics.watch(metrics.SESSIONS, lambda: engine.open_count)
    context.metrics.watch(metrics.SESSIONS_WAITING, lambda: engine.waiting_count)
    context.metrics.watch(metrics.BUDGET, budget.seen)
    # Beside the sessions, which never wait for it.
    projecting = asyncio.create_task(Projector(context).run(), name="cortex-signals")
    try:
        await engine.run(context.ready.set)
    finally:
        projecting.cancel()
        await asyncio.gather(projecting, return_exceptions=True)
        await toolbox.close()
        await switches.close()
        await model.close()


if __name__ == "__main__":
    runtime.main("cortex")
