"""A tool of one file, through all services: shown to the model, run, and refused where it must."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.cortex.core.draft.kinds import profile_of
from services.cortex.thought.tools import offered_to
from services.executor import own_tools
from services.executor.tools.declaration import declared
from tests.support.agent import ask
from tests.support.world import running_world
from vigil.contracts import ToolResultEvent, decode_event
from vigil.settings.config import Config


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The toy lies in the folder of the executor's tools."""
    place = str(Path(__file__).parent / "own_tools")
    monkeypatch.setattr(own_tools, "__path__", [*own_tools.__path__, place])
    declared.cache_clear()
    yield
    declared.cache_clear()


async def test_a_conversation_counts_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """X-1: its schema is the struct's; what doesn't fit it is never run."""
    async with running_world(tmp_path, monkeypatch, has_hands=True) as world:
        ann = await world.person()
        await ann.exchange(ask(("word_count", {"text": "a b  c"}), ("word_count", {"text": ""})))
        events = [decode_event(m.data) for m in ann.talk.log if ".in.tool" in m.subject]
        told = {e.payload.content for e in events if isinstance(e, ToolResultEvent)}
        assert told == {"3 words"}
        (shown,) = [one for one in world.agent.requests[1].tools if one.name == "word_count"]
        assert shown.description == "Count the words of a text."
        assert shown.input_schema["required"] == ["text"]


def test_only_the_kinds_that_it_names_are_offered_it() -> None:
    tool = declared()["word_count"].tool(Config())
    offered = {
        kind: offered_to(profile_of(kind), {tool.name: tool}).all for kind in ("channel", "worker")
    }
    assert [tool.name in [spec.name for spec in specs] for specs in offered.values()] == [
        True, False,
    ]  # fmt: skip
