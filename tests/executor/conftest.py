"""Fixtures: an executor whose tools the test brings along."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from services.executor import presence, sources
from tests.support import executing
from tests.support.calendars import PASSWORD, Radicale
from tests.support.stack import Stack


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counting tools, and patience that suits a test."""
    monkeypatch.setattr(sources, "start", executing.start)
    executing.limit(monkeypatch)
    monkeypatch.setattr(presence, "JUDGE_AFTER_S", 0.2)


@pytest.fixture
async def stack(bare: Stack, limits: None) -> Stack:
    """A broker and an executor with the counting tools."""
    await bare.start("executor")
    return bare


@pytest.fixture(scope="module")
def radicale_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Radicale]:
    """One for all tests of a module: most of what it costs is its start."""
    radicale = Radicale(tmp_path_factory.mktemp("radicale"))
    asyncio.run(radicale.start())
    yield radicale
    radicale.kill()


@pytest.fixture
async def radicale(radicale_server: Radicale) -> AsyncIterator[Radicale]:
    """The same, with an empty calendar, the usual password and nothing in its log."""
    server = radicale_server
    server.set_password(PASSWORD)
    server.forget()
    await server.make()
    yield server
    server.set_password(PASSWORD)
    await server.remove()
