"""Who thinks changes with vigil.toml, in conversations that go on, without a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from tests.support.memories import until
from tests.support.messages_api import MessagesApi, Reply, messages_api, says
from tests.support.stack import Stack, running_stack
from tests.support.talk import PATIENCE_S, Talk
from vigil.edits import toml_sections
from vigil.fields.secrets import file_of_provider
from vigil.settings import config, credentials
from vigil.settings.config import Settings
from vigil.settings.live import followed
from vigil.settings.live.followed import FollowedSettings


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "POLL_S", 0.02)
    for name in ("VIGIL_PORT", "VIGIL_MODEL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def written(home: Path, one: MessagesApi, two: MessagesApi, **more: Any) -> dict[str, Any]:
    """Write a file with two models, of which the first thinks; return its sections."""
    models = {"one": {"base_url": one.url}, "two": {"base_url": two.url} | more}
    for name, section in models.items():
        toml_sections.add(home / "vigil.toml", "models", name, section)
    toml_sections.set_value(home / "vigil.toml", ("model", "main"), "one")
    return {"model": {"main": "one"}, "models": models}


async def said(talk: Talk, text: str) -> str:
    return await answered(talk, await talk.say(text))


async def answered(talk: Talk, event: str) -> str:
    """Return which model answered last, once it did."""
    await talk.ended(event)
    return [used.model for turn in talk.turns for used in turn.usage][-1]


def main_of(stack: Stack) -> Any:
    return stack.contexts["cortex"].facts["model"]


async def test_another_model_thinks_from_the_next_call_on(tmp_path: Path) -> None:
    """A call that is under way ends with the model that it began with."""

    def slow(body: dict[str, Any]) -> Reply:
        return msgspec.structs.replace(says("word " * 20), chunk=5, delay_s=0.05)

    async with messages_api(slow) as one, messages_api(lambda _: says("two")) as two:
        sections = written(tmp_path, one, two)
        async with running_stack(tmp_path, services=("cortex",), **sections) as stack:
            talk = await Talk.open(stack, "ann:vigil:t1")
            event = await talk.say("hello")
            await until(lambda: _has(one.requests), "it is asked")
            toml_sections.set_value(tmp_path / "vigil.toml", ("model", "main"), "two")
            await until(lambda: _is(stack, "two"), "it was taken in")
            assert await answered(talk, event) == "one"
            assert await said(talk, "and now?") == "two"
            assert await said(await Talk.open(stack, "ann:vigil:t2"), "and elsewhere?") == "two"


async def test_a_model_that_is_added_thinks_without_a_restart(tmp_path: Path) -> None:
    """`vigil models add NAME --main`: one without prices changes no limit."""
    async with messages_api(lambda _: says("one")) as one, messages_api(says) as two:
        sections = written(tmp_path, one, two)
        file = tmp_path / "vigil.toml"
        toml_sections.remove(file, "models", "two")
        del sections["models"]["two"]
        async with running_stack(tmp_path, services=("cortex",), **sections) as stack:
            toml_sections.add(file, "models", "two", {"base_url": two.url})
            toml_sections.set_value(file, ("model", "main"), "two")
            await until(lambda: _is(stack, "two"), "it was taken in")


async def _has(found: list[Any]) -> bool:
    return bool(found)


async def _is(stack: Stack, name: str) -> bool:
    return main_of(stack) == name


async def test_what_can_not_be_used_changes_nothing_and_is_told(tmp_path: Path) -> None:
    async with messages_api(lambda _: says("one")) as one, messages_api(says) as two:
        sections = written(tmp_path, one, two)
        async with running_stack(tmp_path, services=("cortex",), **sections) as stack:
            talk, file = await Talk.open(stack, "ann:vigil:t1"), tmp_path / "vigil.toml"
            ways: dict[str, Callable[[], object]] = {
                "cortex.models_refused": partial(
                    toml_sections.set_value, file, ("model", "main"), "nobody"
                ),
                "cortex.models_wait": partial(
                    toml_sections.set_value, file, ("budget", "daily_tokens"), 5
                ),
                "config.refused": partial(file.write_text, "[model"),
            }
            for action, change in ways.items():
                with structlog.testing.capture_logs() as logs:
                    change()
                    await until(partial(_told, logs, action), action)
                assert await said(talk, action) == "one"


async def _told(logs: list[Any], action: str) -> bool:
    return any(log.get("action") == action for log in logs)


async def test_a_key_that_is_kept_is_taken_in(tmp_path: Path) -> None:
    """`vigil models key`: the default model thinks, where only the stand-in did."""
    (tmp_path / "vigil.toml").write_text("")
    async with running_stack(tmp_path, services=("cortex",), model={"main": ""}) as stack:
        assert main_of(stack) == "rehearsal"
        credentials.write_private(file_of_provider(tmp_path, "anthropic"), b"sk-ant-1\n")
        await until(lambda: _is(stack, "claude-sonnet-5-5"), "the key was taken in")


async def test_a_key_is_taken_in_by_a_home_without_a_file(tmp_path: Path) -> None:
    """`vigil models key anthropic` is all that some do."""
    read: asyncio.Queue[Settings] = asyncio.Queue()
    following = FollowedSettings(config.load({}, home=tmp_path), read.put).follow()
    async with asyncio.timeout(PATIENCE_S):
        task = asyncio.create_task(following)
        credentials.write_private(file_of_provider(tmp_path, "anthropic"), b"sk-test\n")
        found = await read.get()
        task.cancel()
    assert found.anthropic_api_key == "sk-test"
    assert "sk-test" not in repr(found)
