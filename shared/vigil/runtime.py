"""What every service stands on: one connection, a clock, health, and a clean end.

A service is a module ``services.{name}.__main__`` with ``async def serve(context)``. It sets
`context.ready` once it works and runs until it is cancelled. It runs alone
(``vigil serve cortex``), in any number of replicas, or beside the others in one process.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, cast

import msgspec
import structlog
import uvloop

from . import __version__, distribution
from .bus.bus import Bus, BusError
from .bus.replies import ERR_CONSUMER_NOT_FOUND, ERR_STREAM_NOT_FOUND
from .clock import Clock, SystemClock, new_id
from .errors import ConfigError, LeaseLost, Unavailable, VigilError
from .imports import garbage
from .observe import logs, metrics, otlp, replica, trace
from .observe.health import HEALTH, Health
from .observe.metrics import Metrics
from .observe.probes import Probes
from .observe.trace import Tracer
from .settings import config, credentials
from .settings.config import Settings
from .settings.live.renewal import Renewal
from .texts.trouble import reason_of

log = structlog.get_logger("vigil.runtime")

STOP_GRACE_S: Final = 25.0
AGAIN_S: Final = 0.5
_OF_BROKER: Final = (Unavailable, BusError, LeaseLost)
_UNPREPARED: Final = (ERR_STREAM_NOT_FOUND, ERR_CONSUMER_NOT_FOUND)
TOLD_EACH: Final = 60
"""How many tries in a row that end alike are one line of the log."""


class Context(msgspec.Struct, kw_only=True):
    """What a service gets. Tests build it with a clock and ids of their own."""

    service: str
    settings: Settings
    bus: Bus
    clock: Clock
    new_id: Callable[[], str]
    ready: asyncio.Event
    instance: str
    """A random id of this run of the replica; metrics and traces have a name that stays."""
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
    """What its health tells beside being well; JSON values."""
    warnings: dict[str, str] = msgspec.field(default_factory=dict)
    """What it can't do at present although it is ready, and why, by what it is about."""
    asked: list[Callable[[], str]] = msgspec.field(default_factory=list)
    """Functions that return such a warning when health is asked for; empty: there is none."""
    tracer: Tracer = trace.OFF
    metrics: Metrics
    lasting: contextlib.ExitStack | None = None
    """Closed when the service ends for good, however often it begins anew; None: it won't."""
    kept: dict[str, Any] = msgspec.field(default_factory=dict)
    """What it finds again when it begins anew, by names of its own."""
    in_hand: Callable[[], int] = lambda: 0
    """How much is under way that should end before the service begins anew."""
    failed: asyncio.Future[None] = msgspec.field(default_factory=asyncio.Future)
    """Has the error of what ran beside the service and ended by it; nothing else sets it."""

    def beside(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Begin what goes on beside the service, until somebody cancels it.

        If it fails, the service ends by its error: what ended in silence nobody would miss before
        they waited for what it does.
        """
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._heed)
        return task

    def _heed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) and not self.failed.done():
            about = {"task": task.get_name(), "error": logs.described(error)}
            log.error("a part of the service failed", action="service.part", **about)
            self.failed.set_exception(error)

    def health(self) -> Health:
        problems = list(self.bus.violations[:3])
        if not self.bus.is_connected:
            problems.append("not connected to the broker")
        problems += [f"the broker confirms no write to {root}" for root in self.bus.unconfirmed]
        return Health(
            service=self.service,
            instance=self.instance,
            pid=os.getpid(),
            version=__version__,
            ready=self.ready.is_set() and not problems,
            problems=tuple(problems),
            warnings=(*self.warnings.values(), *filter(None, (ask() for ask in self.asked))),
            facts=self.facts,
        )


Serve = Callable[[Context], Awaitable[None]]


def load_service(name: str) -> Serve:
    """Import a service. Raises: ConfigError, if what it needs isn't installed."""
    try:
        module = importlib.import_module(f"services.{name}.__main__")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the service {name} needs {error.name}: {distribution.command_for()}"
        ) from error
    return cast(Serve, module.serve)


async def run(
    name: str,
    settings: Settings,
    url: str,
    *,
    on_ready: Callable[[Context], None] | None = None,
    clock: Clock | None = None,
    serve: Serve | None = None,
    on_start: Callable[[Context], None] | None = None,
    renewal: Renewal | None = None,
) -> None:
    """Run one service until cancelled; anew where the configuration changed so.

    Args:
        on_start: is told of the context before it is ready.
        renewal: what was taken in of the configuration by earlier runs; none: this is the first.

    Raises:
        ConfigError: it can't start as configured. One that began anew goes on as before then.
        Unavailable: no broker at `url`.
    """
    serve = serve or load_service(name)
    if renewal is None:
        renewal = Renewal(name, settings)
    else:
        renewal.catch_up()
    kept: dict[str, Any] = {}

    def make(bus: Bus, called: str, tracer: Tracer) -> Context:
        return Context(
            service=name,
            settings=renewal.settings,
            bus=bus,
            clock=clock or SystemClock(),
            new_id=new_id,
            ready=asyncio.Event(),
            instance=new_id(),
            tracer=tracer,
            metrics=Metrics(name, called),
            lasting=lasting,
            kept=kept,
            warnings={"config": renewal.refused} if renewal.refused else {},
            asked=[renewal.unusable],
        )

    following = asyncio.create_task(renewal.follow(), name=f"{name}-config")
    with contextlib.ExitStack() as lasting:
        lasting.callback(following.cancel)
        while True:
            heed_cancellation()
            try:
                if not await _run_once(name, renewal, url, make, serve, on_start, on_ready):
                    return
            except ConfigError as error:
                if not renewal.refuse(str(error)):
                    raise
                about = {"service": name, "error": str(error)}
                log.error("the configuration can't be used", action="service.refused", **about)


async def _run_once(
    name: str,
    renewal: Renewal,
    url: str,
    make: Callable[[Bus, str, Tracer], Context],
    serve: Serve,
    on_start: Callable[[Context], None] | None,
    on_ready: Callable[[Context], None] | None,
) -> bool:
    """Run one service with the settings of now; return whether it's to begin anew with others."""
    settings = renewal.settings
    seed = credentials.load(settings.credentials, name)
    bus = await Bus.connect(url, role=name, seed=seed)
    stack = contextlib.ExitStack()
    called = stack.enter_context(replica.named(name, settings.home))
    context = make(bus, called, await otlp.tracer_for(name, called))
    _watch(context)
    if on_start is not None:
        on_start(context)

    async def answer_health(msg: Any) -> None:
        await bus.send(msg.reply, msgspec.json.encode(context.health()))

    async def answer_metrics(msg: Any) -> None:
        await bus.send(msg.reply, context.metrics.exposition())

    async def announce() -> None:
        await context.ready.wait()
        log.info("ready", action="service.ready", service=name, pid=os.getpid())
        if on_ready is not None:
            on_ready(context)

    announcing = asyncio.create_task(announce(), name=f"announce-{name}")
    try:
        await bus.listen(HEALTH, answer_health)
        await bus.listen(metrics.SUBJECT, answer_metrics)
        return await _until_anew(context, serve, renewal)
    finally:
        announcing.cancel()
        stack.close()
        await bus.close()
        await context.tracer.close()


async def _until_anew(context: Context, serve: Serve, renewal: Renewal) -> bool:
    """Serve until it ends, or until the configuration changed so that it has to begin anew."""
    patience = asyncio.timeout(None)

    def end(*_: object) -> None:
        patience.reschedule(asyncio.get_running_loop().time())

    async def wait() -> None:
        await context.ready.wait()
        await renewal.wait(context.in_hand)
        end()

    ending = asyncio.create_task(wait(), name=f"{context.service}-anew")
    context.failed.add_done_callback(end)
    try:
        async with patience:
            await serve(context)
    except TimeoutError:
        if not patience.expired():
            raise
    finally:
        ending.cancel()
        context.failed.remove_done_callback(end)
    if context.failed.done():
        context.failed.result()
    return patience.expired()


def _watch(context: Context) -> None:
    """Tell what every service tells."""
    counts, bus = context.metrics, context.bus
    counts.watch(metrics.READY, lambda: {__version__: float(context.health().ready)})
    counts.watch(metrics.BUS_RECONNECTS, lambda: bus.reconnects)
    counts.watch(metrics.BUS_UNKNOWN, lambda: bus.unknown_outcomes)
    counts.watch(metrics.BUS_VIOLATIONS, lambda: len(bus.violations))


async def run_until_signalled(main: Awaitable[None]) -> None:
    """Run `main` until it ends, or until SIGTERM or SIGINT asks it to."""
    task = asyncio.ensure_future(main)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _serve_alone(name: str, settings: Settings, url: str) -> None:
    """Run one service in a process of its own; wait for a broker that isn't there yet."""
    probes = Probes()

    def on_start(context: Context) -> None:
        probes.context = context

    def on_ready(_: Context) -> None:
        garbage.keep()

    def on_wait(reason: str) -> None:
        probes.context, probes.waits_for = None, reason
        gc.enable()

    async with probes.serving(settings.config.metrics):
        await keep_running(
            name, settings, url, on_ready=on_ready, on_start=on_start, on_wait=on_wait
        )


async def keep_running(
    name: str,
    settings: Settings,
    url: str,
    *,
    on_ready: Callable[[Context], None],
    on_start: Callable[[Context], None] | None = None,
    on_wait: Callable[[str], None] = lambda _: None,
) -> None:
    """Run one service until cancelled; begin again for as long as the broker keeps it from working.

    Raises:
        ConfigError: it can't start as configured.
    """
    renewal = Renewal(name, settings)
    told: Counter[str] = Counter()

    def was_ready(context: Context) -> None:
        told.clear()
        on_ready(context)

    while True:
        try:
            return await run(
                name, settings, url, on_ready=was_ready, on_start=on_start, renewal=renewal
            )
        except (VigilError, ExceptionGroup) as error:
            reason = of_broker(error)
            if not reason:
                raise
        heed_cancellation()
        on_wait(reason)
        if told[reason] % TOLD_EACH == 0:
            log.warning("no broker yet", action="service.waiting", service=name, error=reason)
        told[reason] += 1
        await asyncio.sleep(AGAIN_S)


def heed_cancellation() -> None:
    """Raise CancelledError if this task was asked to end.

    Whoever goes on after an error asks this first: a task group whose parts fail while it's
    cancelled raises their errors, and the cancellation is gone.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def of_broker(error: Exception) -> str:
    """Return in words why the broker ended a service; empty: something else did.

    Several parts of a service may have noticed; only if all did, nothing else was wrong.
    """
    if isinstance(error, ExceptionGroup):
        reasons = [of_broker(part) for part in error.exceptions]
        return reasons[0] if all(reasons) else ""
    if isinstance(error, BusError) and error.code in _UNPREPARED:
        return f"{error}: `vigil provision` makes what this version keeps on the broker"
    return reason_of(error) if isinstance(error, _OF_BROKER) else ""


def main(name: str) -> None:
    """Entry point of ``python -m services.{name}``; `vigil serve` calls :func:`serve_alone`."""
    logs.configure()
    try:
        serve_alone(name, config.load())
    except ConfigError as error:
        sys.exit(f"{name} can't start: {error}")


def serve_alone(name: str, settings: Settings) -> None:
    """Run one service in this process until a signal ends it. Raises: ConfigError."""
    distribution.check_services()
    gc.disable()  # until it is ready: nothing that a start makes is garbage
    url = settings.config.nats.url
    if not url:
        raise ConfigError(f"set NATS_URL: {name} runs alone, beside a broker that is there")
    try:
        uvloop.run(run_until_signalled(_serve_alone(name, settings, url)))
    except ConfigError:
        raise
    except Exception as error:
        log.exception("service failed", action="service.failed", service=name)
        raise SystemExit(1) from error
