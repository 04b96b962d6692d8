"""The console's first page: it comes by itself, asks, tries, writes, and says what it refuses."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support import warm
from tests.support.chat_api import chat_api
from tests.support.console import HERE, Reader, Shown, signed_in
from tests.support.gateway import assert_problem, until
from tests.support.messages_api import Reply, calls, fails, messages_api, says
from tests.support.world import World, running_world
from vigil.clock import SystemClock
from vigil.doctor import models
from vigil.fields.secrets import file_of_provider
from vigil.local import model_servers
from vigil.settings.live import followed

pytestmark = pytest.mark.asyncio(loop_scope="module")
REMARK = "# What I wrote here stays.\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A home in which nothing is set; no server of models answers."""
    home: Path = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(followed, "POLL_S", 0.05)
        patch.setattr(model_servers, "USUAL", {})
        if warm.IS_OFFERED:  # an SDK of models takes seconds to import; tests/cli try it as it is
            patch.setattr(models, "subprocess", warm.Subprocess)
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "VIGIL_MODEL", "ANTHROPIC_BASE_URL"):
            patch.delenv(name, raising=False)
        clock = SystemClock()
        async with running_world(home, patch, clock, has_agent=False) as world:
            file = home / "vigil.toml"
            file.write_text(REMARK + file.read_text())
            yield world


def home_of(world: World) -> Path:
    return world.stack.settings.home


async def owner(world: World, name: str) -> Reader:
    return await signed_in(world.gate, name, is_admin=True)


async def test_it_comes_by_itself_until_its_person_goes_on(world: World) -> None:
    """To who may set everything, and set nothing; to nobody else, and never after "Not now"."""
    me, other = await owner(world, "me"), await signed_in(world.gate, "ann")
    led = await me.client.get("/console")
    assert (led.status_code, led.headers["location"]) == (303, "/console/welcome")
    assert (await other.client.get("/console")).status_code == 200
    page = await me.page("/welcome")
    assert "stand-in" in page.text
    assert "No server of models answers" in page.text
    assert page.strange() == []
    assert await me.did("/welcome", do="skip") == "/console"
    for reader in (me, await owner(world, "me")):
        assert (await reader.client.get("/console")).status_code == 200
    assert "/console/welcome" in (await me.page("")).links
    assert "An admin chooses it" in (await other.page("/welcome")).text


async def test_what_is_refused_stands_beside_it(world: World) -> None:
    """With the field and the reason, and what was written; nothing of that form is set."""
    me = await owner(world, "strict")
    form = {"do": "you", "called": "Ann", "timezone": "Mars/Base", "language": "de"}
    text, values = await refused(me, form)
    assert "Time zone: " in text
    assert ("timezone", "Mars/Base") in values
    assert ("called", "Ann") in values
    text, _ = await refused(me, {"do": "reach", "quiet_hours": "at night", "channel": ""})
    assert "Quiet hours: " in text
    text, _ = await refused(me, {"do": "model", "who": "openai", "key": "", "model": "gpt"})
    assert "Key: is missing" in text
    text, values = await refused(
        me, {"do": "model", "who": "openai", "key": "sk-secret", "model": ""}
    )
    assert "Model: is missing" in text
    assert "sk-secret" not in str(values)
    text, _ = await refused(me, {"do": "model", "who": "server http://127.0.0.1:1/v1 x"})
    assert "Server: no server of models answers there" in text
    api = await world.gate.person("strict", is_admin=True)
    assert (await api.get("/api/person")).json()["own"] == []
    assert not file_of_provider(home_of(world), "openai").exists()


async def test_a_name_that_is_taken_out_is_forgotten(world: World) -> None:
    """Set anew it's another, set as it stands nothing is learnt anew."""
    me, api = await owner(world, "named"), await world.gate.person("named", is_admin=True)

    async def names(called: str) -> list[tuple[str, int]]:
        form = {"do": "you", "called": called, "timezone": "UTC", "language": ""}
        assert await me.did("/welcome", **form) == "/console/welcome?done=you#you"
        found = (await api.get("/api/preferences")).json()["preferences"]
        return [(one["value"], one["revision"]) for one in found]

    (first,) = await names("Ann")
    assert await names("Ann") == [first]
    (second,) = await names("Bea")
    assert (first[0], second[0]) == ("Ann", "Bea")
    assert await names("") == []


async def refused(reader: Reader, form: dict[str, str]) -> tuple[str, set[tuple[str, str]]]:
    """Return what the page says, and what its fields hold."""
    answer = await reader.client.post("/console/welcome", data=form, headers=HERE)
    assert answer.status_code == 200, answer.text
    page = Shown(answer.text)
    held = {(name, value) for one in page.forms for name, value in one.items()}
    assert 'role="alert"' in answer.text
    return page.text, held


async def test_only_an_admin_may(world: World) -> None:
    """Neither by the page nor past it."""
    ann, api = await signed_in(world.gate, "ann"), await world.gate.person("ann")
    text, _ = await refused(ann, {"do": "model", "who": "anthropic", "key": "sk-a", "model": ""})
    assert "admin" in text
    wanted = {"provider": "anthropic", "key": "sk-a"}
    assert_problem(await api.put("/api/models/main", json=wanted), 403)
    assert_problem(await api.get("/api/models"), 403)
    assert not file_of_provider(home_of(world), "anthropic").exists()


async def test_a_key_is_tried_before_it_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that its server refuses changes nothing; a good one is kept, for its owner alone, and
    thinks without a restart; the file keeps its remarks."""
    home, me = home_of(world), await owner(world, "keys")

    def behave(body: dict[str, Any]) -> Reply:
        if "sk-good" not in str(server.requests[-1].headers):
            return fails(401, "authentication_error", error_message="invalid x-api-key")
        return calls("say", {"word": "ok"}) if body.get("tools") else says("Hello.")

    async with messages_api(behave) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        before = (home / "vigil.toml").read_bytes()
        form = {"do": "model", "who": "anthropic", "key": "sk-bad", "model": ""}
        text, _ = await refused(me, form)
        assert "Key: " in text
        assert "401" in text
        assert (home / "vigil.toml").read_bytes() == before
        assert not file_of_provider(home, "anthropic").exists()
        answer = await me.client.post(
            "/console/welcome", data=form | {"key": "sk-good"}, headers=HERE
        )
        assert "thinks from now on" in answer.text
        there = file_of_provider(home, "anthropic")
        assert there.read_text().strip() == "sk-good"
        assert there.stat().st_mode & 0o077 == 0


async def test_a_server_of_this_machine_is_found_and_thinks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, me = home_of(world), await owner(world, "local")

    async with chat_api(lambda body: says("Hello, I think here.")) as server:
        monkeypatch.setattr(model_servers, "USUAL", {"Ollama": server.port})
        page = await me.page("/welcome")
        (choice,) = {
            value
            for _, found in page.tags
            if (value := found.get("value") or "").startswith("server ")
        }
        answer = await me.client.post(
            "/console/welcome", data={"do": "model", "who": choice}, headers=HERE
        )
        assert "thinks from now on" in answer.text, answer.text
        text = (home / "vigil.toml").read_text()
        assert text.startswith(REMARK)
        read = tomllib.loads(text)
        assert read["model"]["main"] == "local"
        assert read["models"]["local"]["base_url"] == server.url
        api = await world.gate.person("local", is_admin=True)

        async def thinks() -> bool:
            return (await api.get("/api/status")).json()["model"] == "qwen3:8b"

        await until(thinks, "the running cortex takes it in")
        person = await world.person("local:vigil:t1", has_socket=False)
        await person.exchange("Hello?")
        assert (await person.transcript())[-1]["text"] == "Hello, I think here."


async def test_what_one_says_of_oneself_is_known_at_once(world: World) -> None:
    me, api = await owner(world, "called"), await world.gate.person("called", is_admin=True)
    form = {"do": "you", "called": "Ann", "timezone": "Europe/Vienna", "language": "de-AT"}
    assert await me.did("/welcome", **form) == "/console/welcome?done=you#you"
    held = (await api.get("/api/person")).json()
    assert (held["timezone"], held["language"]) == ("Europe/Vienna", "de-AT")
    (known,) = (await api.get("/api/preferences")).json()["preferences"]
    assert (known["key"], known["value"]) == ("name", "Ann")
    page = await me.page("/welcome", done="you")
    assert "Set." in page.text
    assert "Ann" in {one.get("called") for one in page.forms}
    there = await me.did("/welcome", do="finish")
    assert there == "/console/conversations/called:vigil:main"
    errand = next(one for one in page.links if "errand=1" in one)
    assert "Remind me in 2 minutes" in (await me.page(errand.removeprefix("/console"))).text
