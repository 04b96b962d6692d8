"""A model that calls no tools is known by what was seen of it, and its person is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.cortex.models import tool_sight
from services.cortex.models.tool_sight import ToolSight, keep
from services.cortex.trial import tried
from tests.support.messages_api import MessagesApi, Reply, calls, fails, messages_api, says
from tests.support.stack import Stack, running_stack
from tests.support.talk import Talk
from vigil.settings.models.trial import FILE, IN_PROSE, TriedModel

REMIND = "remind me to stretch in an hour"
SERVICES = ("cortex", "scheduler", "executor", "delivery")
MODEL = {"main": "local", "retry_base_s": 0.1}
PROMISE = "Of course, I will remind you in an hour!"


def _in_prose(_: dict[str, Any]) -> Reply:
    return says(PROMISE)


def _with_tools(body: dict[str, Any]) -> Reply:
    is_new = "tool_result" not in str(body["messages"][-1])
    if is_new and body.get("tools"):
        name = body["tools"][0]["name"]
        is_trial = name == "say"
        return calls(name, {"word": "ok"} if is_trial else {})
    return says("Done.")


async def _asked(talk: Talk, api: MessagesApi) -> dict[str, Any]:
    """Ask for a reminder; return what the model was asked first."""
    count = len(api.requests)
    await talk.ended(await talk.say(REMIND))
    found: dict[str, Any] = api.requests[count].body
    return found


async def _try(stack: Stack) -> None:
    """Do as `vigil models` and `vigil doctor` do."""
    keep(stack.settings.run_file.with_name(FILE), await tried(stack.settings))


def _told(home: Talk) -> list[str]:
    return [text for text in home.texts if IN_PROSE in text]


async def test_one_that_was_seen_to_answer_in_prose_is_told_so_and_its_person_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is guessed from words: until it was tried, nobody knows."""
    monkeypatch.setattr(tool_sight, "POLL_S", 0.0)
    async with (
        messages_api(_in_prose) as api,
        running_stack(tmp_path, SERVICES, anthropic_base_url=api.url, model=MODEL) as stack,
    ):
        talk = await Talk.open(stack, "ann:vigil:t1")
        home = await Talk.open(stack, "ann:vigil:main")
        body = await _asked(talk, api)
        assert body["tools"]
        assert "You have no tools" not in str(body["system"])

        await _try(stack)
        for _ in range(2):
            body = await _asked(talk, api)
            assert "tools" not in body
            assert "You have no tools" in str(body["system"])
        await home.until(lambda: bool(_told(home)))
        assert len(_told(home)) == 1, "once"

        # Another model behind the same name, that calls: what is newly seen holds.
        api.behave = _with_tools
        await _try(stack)
        body = await _asked(talk, api)
        assert body["tools"]
        assert "You have no tools" not in str(body["system"])
        # One call that was seen counts more than a trial that went wrong.
        api.behave = _in_prose
        await _try(stack)
        assert (await _asked(talk, api))["tools"]
        assert len(_told(home)) == 1


async def test_who_refuses_tools_is_told_of_too(tmp_path: Path) -> None:
    """The sibling: a server that takes no tools says so itself."""

    def refusing(body: dict[str, Any]) -> Reply:
        words = "qwen:0.5b does not support tools"
        return fails(400, error_message=words) if "tools" in body else says("I can't do that.")

    async with (
        messages_api(refusing) as api,
        running_stack(tmp_path, SERVICES, anthropic_base_url=api.url, model=MODEL) as stack,
    ):
        talk = await Talk.open(stack, "ann:vigil:t1")
        home = await Talk.open(stack, "ann:vigil:main")
        await talk.ended(await talk.say(REMIND))
        await talk.ended(await talk.say(REMIND))
        await home.until(lambda: bool(_told(home)))
        assert len(_told(home)) == 1


def test_what_is_kept_is_of_one_model_at_one_server(tmp_path: Path) -> None:
    """One that gives no answer keeps what was known; a file that can't be read says nothing."""
    file = tmp_path / "run" / FILE
    prose = TriedModel(name="main", model="qwen", server="127.0.0.1:1", lacks=("tools",))
    keep(file, [prose, TriedModel(name="gone", error="away")])
    assert ToolSight(file).tried() == (prose,)
    keep(file, [TriedModel(name="main", error="away")])
    assert ToolSight(file).tried() == (prose,)

    class Here:
        name = "qwen"
        server = ("127.0.0.1", 1)

    class Elsewhere(Here):
        server = ("127.0.0.1", 2)

    class Other(Here):
        name = "gemma"

    assert ToolSight(file).is_in_prose("main", Here())  # type: ignore[arg-type]
    for other in (Elsewhere(), Other()):
        assert not ToolSight(file).is_in_prose("main", other)  # type: ignore[arg-type]
    assert not ToolSight(file).is_in_prose("second", Here())  # type: ignore[arg-type]
    file.write_text("{")
    assert ToolSight(file).tried() == ()
    assert ToolSight().tried() == ()


def test_models_that_are_tried_meanwhile_are_known_within_a_second(tmp_path: Path) -> None:
    """It isn't looked with every message; what was read before holds until then."""
    file, at = tmp_path / "run" / FILE, 0.0
    sight = ToolSight(file, monotonic=lambda: at)
    assert sight.tried() == ()
    prose = TriedModel(name="main", model="qwen", lacks=("tools",))
    keep(file, [prose])
    assert sight.tried() == ()
    at = 1.0
    assert sight.tried() == (prose,)
    file.unlink()
    at = 1.9
    assert sight.tried() == (prose,)
