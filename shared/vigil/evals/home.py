"""The home of one story: made in a temporary folder with all that runs in it, and thrown away.

Nothing of the person's own home is written, and of that only their models are used, and who their
agent is. No story reaches the network but for the model's server: pages are the story's own, and
there are no channels and MCP servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from .. import runtime
from ..background.end import end_tasks
from ..broker.process import Broker
from ..broker.provision import provision
from ..clock import PACE_S
from ..errors import Unavailable
from ..local.home import OWNER, ensure_home
from ..net.staged import PAGES
from ..settings.config import Config, Settings
from ..settings.sections import Agent, Autonomy, Nats, Person
from ..subjects import SessionKey
from ..topology import SERVICES
from ..zones.database import zone_named
from . import moments
from .stage import Stage, StageOptions, StoryClock
from .story import EvalStory

PACE: Final = 0.05
"""How often the services look at the clock."""
START_S: Final = 120.0
_TAPES: Final = "services.cortex.models.tape"


@contextlib.asynccontextmanager
async def staged(
    story: EvalStory, options: StageOptions, tape: object = None
) -> AsyncIterator[Stage]:
    """Make a home for a story, with all running in it, and throw it away.

    Args:
        tape: a `StoryTape` of the cortex, if answers are recorded, or come from a recording.

    Raises:
        ConfigError: something can't start; Unavailable: it doesn't.
    """
    with tempfile.TemporaryDirectory(prefix="vigil-eval-") as folder:
        async with contextlib.AsyncExitStack() as stack:
            home = Path(folder)
            settings = _settings(story, options, home)
            ensure_home(settings)
            _bring_agent(options, home)
            broker = Broker(settings.config.nats, home=home, retention=settings.config.retention)
            stack.push_async_callback(broker.stop)
            await broker.start()
            admin = await broker.admin()
            stack.push_async_callback(admin.close)
            await provision(admin, settings.config.retention, settings.config.nats)
            # Ahead of the broker's clock: else it would fire timers before the story gets there.
            begins = moments.moment(
                "begins", story.begins, datetime.now(UTC), zone_named(story.timezone)
            )
            clock = StoryClock(begins)
            key = SessionKey.of(OWNER, options.agent, "main")
            stage = Stage(admin, clock, key, options)
            stage.pages |= {page.url: page.text for page in story.page}
            await stage.follow()
            stack.push_async_callback(stage.close)
            await _start(settings, broker.url, stage, tape, stack)
            for content in story.knows:
                await stage.remember(content)
            await stage.settle()
            yield stage


def _settings(story: EvalStory, options: StageOptions, home: Path) -> Settings:
    """Return what holds in the home of a story: all its own, but for models and their limits."""
    mine = options.settings.config
    person = Person(timezone=story.timezone, quiet_hours=story.quiet_hours)
    models = {
        name: msgspec.structs.replace(
            row, api_key_file=row.api_key_file and str(options.settings.home / row.api_key_file)
        )
        for name, row in mine.models.items()
    }
    config = Config(
        nats=Nats(partitions=1, sync="default"),
        autonomy=Autonomy(enabled=True),
        agent=Agent(authority=story.authority, model=mine.agent_of(options.agent).model),
        person=person,
        model=mine.model,
        models=models,
        budget=mine.budget,
    )
    return msgspec.structs.replace(options.settings, config=config, home=home)


def _bring_agent(options: StageOptions, home: Path) -> None:
    """Take over who the person's agent is."""
    files = options.settings.agents / options.agent
    if files.is_dir():
        shutil.copytree(files, home / "agents" / options.agent)


async def _start(
    settings: Settings,
    url: str,
    stage: Stage,
    tape: object,
    stack: contextlib.AsyncExitStack,
) -> None:
    """Start the services; they end with the stack."""
    names = [name for name in SERVICES if name != "gateway"]
    readies = {name: asyncio.Event() for name in names}
    with _set({PACE_S: PACE, PAGES: stage.pages, _taped(): tape}):
        tasks = [
            asyncio.create_task(
                runtime.run(
                    name,
                    settings,
                    url,
                    on_ready=lambda c: readies[c.service].set(),
                    clock=stage.clock,
                ),
                name=name,
            )
            for name in names
        ]
    stage.services = tasks
    stack.push_async_callback(end_tasks, *tasks)
    ready = asyncio.create_task(_all_set(readies.values()))
    try:
        await asyncio.wait({*tasks, ready}, return_when="FIRST_COMPLETED", timeout=START_S)
        for task in tasks:
            if task.done():
                raise task.exception() or Unavailable(f"{task.get_name()} ended")
        if not ready.done():
            missing = ", ".join(name for name, one in readies.items() if not one.is_set())
            raise Unavailable(f"{missing} did not become ready in {START_S:g} s")
    finally:
        ready.cancel()


async def _all_set(events: Iterable[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


def _taped() -> ContextVar[Any]:
    """Return where the cortex looks for a tape. The package imports no service by its name."""
    found: ContextVar[Any] = importlib.import_module(_TAPES).TAPE
    return found


def tape(path: Path, mode: Literal["record", "play"]) -> Any:
    """Open a file of answers. Raises: OSError, ValueError: it can't be written, or read."""
    return importlib.import_module(_TAPES).Tape(path, mode)


@contextlib.contextmanager
def _set(values: Mapping[ContextVar[Any], Any]) -> Any:
    """Have variables hold something for the tasks that are made meanwhile."""
    tokens = [(name, name.set(value)) for name, value in values.items()]
    try:
        yield
    finally:
        for name, token in tokens:
            name.reset(token)
