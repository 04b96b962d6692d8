"""A kind of session that is added: one file and one row, through the real services (SPEC C-1).

The file is `kinds/gardener.py`, the row one of `SESSION_KINDS`. The fixture puts them where a
contributor would; nothing else of Vigil knows of it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import pytest

from services.cortex import profiles
from services.cortex.core.draft.kinds import profile_of, registered
from services.cortex.policy import policy_of
from services.gateway import app
from tests.cortex.driver import Driver
from tests.support.gateway import Gate, assert_problem
from tests.support.scripted_model import ScriptedModel, say, text_of
from tests.support.stack import running_stack
from tests.support.talk import Talk
from vigil.contracts import (
    Control,
    ControlPayload,
    SaveMemory,
    Start,
    UserMessage,
    UserMessagePayload,
    encode,
)
from vigil.contracts.session_kinds import SESSION_KINDS, SessionKind
from vigil.memory import sources
from vigil.settings.config import Config
from vigil.subjects import SessionKey

ROOT: Final = Path(__file__).parents[2]
KINDS: Final = Path(__file__).parent / "kinds"
ROUND: Final = SessionKey("ann", "vigil", "_gardener-1f")


CACHED: Final = (registered, app.served, app.described, app.document)
"""What is made of the table of kinds as it is first asked for."""


@pytest.fixture
def gardener(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One file in the folder of the profiles, and one row of the words.

    What is made of that table as it is imported is imported here before: `app`, `sources`.
    """
    monkeypatch.setattr(profiles, "__path__", [*profiles.__path__, str(KINDS)])
    monkeypatch.setitem(SESSION_KINDS, "gardener", SessionKind(meaning="rounds of the gardener"))
    for cached in CACHED:
        cached.cache_clear()
    yield
    for cached in CACHED:
        cached.cache_clear()
    sys.modules.pop("services.cortex.profiles.gardener", None)
    vars(profiles).pop("gardener", None)


@pytest.fixture
async def gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gardener: None
) -> AsyncIterator[Gate]:
    async with running_stack(
        tmp_path, services=("cortex", "gateway"), model={"calls_max": 7}
    ) as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        yield gate
        await gate.close()


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    return ScriptedModel(lambda request: say("The fern is dry.")).install(monkeypatch)


def started(prompt: str) -> Control:
    payload = ControlPayload(op="start", start=Start(prompt=prompt))
    return Control(id="s1", session_key=str(ROUND), created_at=datetime.now(UTC), payload=payload)


async def test_a_new_kind_is_one_file_and_one_row(model: ScriptedModel, gate: Gate) -> None:
    """C-1: begun by an event, asked with its own prompt, and concluded its own way."""
    talk = await Talk.open(gate.stack, str(ROUND))
    await gate.admin.publish(ROUND.in_event("control"), encode(started("fern, ivy")))
    await talk.until(lambda: any(turn.outcome == "saved" for turn in talk.turns))
    (request,) = model.requests
    assert "# This round\n\nLook after the plants." in request.system[0]
    assert "fern, ivy" in text_of(request)
    assert (request.tier, request.purpose) == ("cheap", "answer")
    assert {"memory_save", "memory_recall"} <= {spec.name for spec in request.tools}
    assert "shell" not in {spec.name for spec in request.tools}
    (saved,) = [effect for effect in talk.turns[-1].effects if isinstance(effect, SaveMemory)]
    assert (saved.payload.content, saved.payload.source) == ("The fern is dry.", "gardener")
    assert talk.turns[-1].state.loop is None

    ann = await gate.person("ann")
    page = (await ann.get("/api/sessions", params={"kind": "gardener"})).json()
    assert [one["session_key"] for one in page["sessions"]] == [str(ROUND)]
    said = (await ann.get(f"/api/sessions/{ROUND}")).json()["messages"]
    assert [one["text"] for one in said] == ["fern, ivy", "The fern is dry."]
    assert_problem(await ann.get("/api/sessions?kind=butler"), 422, "kind")
    await talk.close()


def test_a_new_kind_serves_what_it_says_and_nothing_else(gardener: None) -> None:
    policy = policy_of(msgspec.convert({"model": {"calls_max": 7}}, Config), ROUND)
    assert policy.calls_max == 7
    driver = Driver(policy=policy)
    driver.key = str(ROUND)
    payload = UserMessagePayload(text="hello")
    (turn,) = driver.feed(
        UserMessage(id="u1", session_key=driver.key, created_at=driver.now, payload=payload)
    )
    assert [note.code for note in turn.notes] == ["not_served"]


def test_nothing_else_was_touched_for_it(gardener: None) -> None:
    assert profile_of("gardener").name == "gardener"
    touched = [
        path
        for folder in ("shared", "services", "prompts", "docs", "deploy")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".j2", ".json", ".toml", ".yml")
        and "gardener" in path.read_text("utf-8")
    ]
    assert touched == []
    assert [path.name for path in sorted(KINDS.glob("*.py"))] == ["gardener.py"]


def test_nothing_of_it_stays_for_others() -> None:
    """Of whichever test of this process comes next."""
    assert b"gardener" not in app.document()
    assert "gardener" not in sources.KINDS
    assert [name for name in sys.modules if name.endswith("profiles.gardener")] == []
    assert not hasattr(profiles, "gardener")
