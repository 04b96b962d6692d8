"""The cortex: thought. Opens sessions, decides, calls the model, commits turns.

It carries out no effect; the scheduler and delivery read those from the turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from vigil import runtime
from vigil.background.end import end_tasks
from vigil.board.followed import FollowedBoard
from vigil.board.kept import BULLETINS, FACTS, ROWS
from vigil.board.kinds.goal import GOALS
from vigil.board.kinds.preference import PREFERENCES
from vigil.bus.lease import Leases
from vigil.bus.shared import SharedFollower
from vigil.circuits import Circuits
from vigil.memory.client import MemoryClient
from vigil.observe import metrics, warmth
from vigil.runtime import Context
from vigil.settings.live.followed import FollowedSettings
from vigil.settings.switches import Switches
from vigil.subjects import SessionKey

from .followed_models import FollowedModels
from .policy import context_tokens_of, policy_of
from .session.engine import Engine
from .session.resources import SessionResources
from .session.rounds import HealthRounds, stuck_after
from .session.session import Session
from .signals import SignalProjector
from .thought.budget import CallBudget
from .thought.catalogue import Catalogue
from .thought.identity import Identities
from .thought.prompts import Prompts
from .thought.recollector import Recollector
from .thought.thinker import Thinker
from .thought.toolbox import Toolbox


async def serve(context: Context) -> None:
    """Run the cortex until cancelled."""
    settings, config = context.settings, context.settings.config
    models = FollowedModels(settings)
    context.facts["model"] = models.catalogue.main.model.name
    switches = await Switches.watch(context.bus)
    switches.contacts.sources = config.contacts
    toolbox = await Toolbox.watch(context.bus)
    identities = Identities(settings.agents, context.clock)
    identities.ensure()
    budget = CallBudget(
        context.bus,
        config.budget,
        context.clock,
        new_id=context.new_id,
        prices_of=config.prices_of,
        times=switches.raised,
        is_current=partial(switches.has_caps, config.caps_digest),
    )
    circuits = Circuits.of(context, patience_s=config.model.timeout_s)
    thinker = Thinker(
        context,
        config=config.model,
        catalogue=models.catalogue,
        identities=identities,
        prompts=Prompts(),
        budget=budget,
        toolbox=toolbox,
        circuits=circuits,
    )

    def take_models(found: Catalogue) -> None:
        thinker.catalogue = found
        context.facts["model"] = found.main.model.name

    recollector = Recollector(
        memory=MemoryClient(context.bus),
        config=config,
        clock=context.clock,
        counts=context.metrics,
    )
    context.facts[warmth.COLD_SESSIONS] = recollector.began_cold
    events = SharedFollower(context.bus, lambda key: key.in_all)
    board = FollowedBoard(context.bus, PREFERENCES, BULLETINS, ROWS, FACTS, GOALS)
    resources = SessionResources(
        bus=context.bus,
        clock=context.clock,
        new_id=context.new_id,
        events=events,
        board=board,
        thinker=thinker,
        recollector=recollector,
        toolbox=toolbox,
        switches=switches,
        tracer=context.tracer,
        counts=context.metrics,
        careful=asyncio.Lock(),
        history_rows=config.model.history_rows,
        idle_release_s=config.sessions.idle_release_s,
    )

    def open_session(key: SessionKey, on_rest: Callable[[], None]) -> Session:
        return Session(
            key,
            resources,
            policy=policy_of(models.config, key),
            person=partial(switches.person, key.user, config.person_of(key.user), key.agent),
            context_tokens=context_tokens_of(models.config, key),
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
        is_gone=switches.is_gone,
    )
    switches.on_change(engine.close_gone)
    context.in_hand = lambda: engine.busy_count
    context.metrics.watch(metrics.SESSIONS, lambda: engine.open_count)
    context.metrics.watch(metrics.SESSIONS_WAITING, lambda: engine.waiting_count)
    context.metrics.watch(metrics.BUDGET, budget.seen)
    # Beside the sessions, which never wait for them.
    rounds = HealthRounds(
        sessions=lambda: engine.sessions,
        reopen=engine.reopen,
        circuits=circuits,
        clock=context.clock,
        facts=context.facts,
        stuck_s=stuck_after(max(config.model.answer_s, config.model.timeout_s)),
    )
    followed = FollowedSettings(settings, partial(models.take, exchange=take_models))
    beside = [
        context.beside(rounds.run(), "cortex-rounds"),
        context.beside(SignalProjector(context).run(), "cortex-signals"),
        context.beside(circuits.follow(), "cortex-circuits"),
        context.beside(board.follow(), "cortex-board"),
        context.beside(followed.follow(), "cortex-models"),
    ]
    try:
        await engine.run(context.ready.set)
    finally:
        await end_tasks(*beside)
        await events.close()
        await toolbox.close()
        await switches.close()
        await models.close()


if __name__ == "__main__":
    runtime.main("cortex")
