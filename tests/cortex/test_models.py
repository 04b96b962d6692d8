"""Which models the settings name, how each is reached, and which of them answers."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.cortex.choice import choose
from services.cortex.core.draft.kinds import profile_of
from services.cortex.model import LanguageModel, ModelError, ModelRequest, Situation
from services.cortex.models.anthropic import AnthropicModel
from services.cortex.models.loader import LoadingModel
from services.cortex.models.openai import OpenAIModel
from services.cortex.models.rehearsal.model import RehearsalModel
from services.cortex.policy import context_tokens_of
from tests.support.chat_api import chat_api
from tests.support.messages_api import fails, messages_api
from tests.support.stack import settings_of
from vigil.contracts import Row, TextBlock
from vigil.errors import ConfigError
from vigil.fields.secrets import Secret
from vigil.settings.config import Settings, load
from vigil.settings.models import DEFAULT_MODEL
from vigil.subjects import SessionKey

KEY = Secret("sk-ant-api03-verysecret")
NOW = datetime(2026, 11, 20, 11, 0, tzinfo=UTC)
REQUEST = ModelRequest(
    session_key="ann:vigil:t1",
    system=(),
    rows=(Row(role="user", source="person", blocks=(TextBlock(text="hello"),), at=NOW),),
    tools=(),
    max_tokens=100,
    timeout_s=10,
    situation=Situation(
        now=NOW, timezone="UTC", user="ann", agent="vigil", follow_ups={}, autonomy_enabled=True
    ),
)


def settings(
    home: Path, main: str = "", key: str | None = None, url: str | None = None, **sections: Any
) -> Settings:
    model = {"main": main} | sections.pop("model", {})
    return msgspec.structs.replace(
        settings_of(home, model=model, **sections),
        anthropic_api_key=key and Secret(key),
        anthropic_base_url=url,
    )


def test_without_a_key_it_is_the_rehearsal_model(tmp_path: Path) -> None:
    assert isinstance(choose(settings(tmp_path)).main.model, RehearsalModel)
    assert isinstance(choose(settings(tmp_path, "rehearsal", key=KEY)).main.model, RehearsalModel)


async def test_a_key_or_a_server_picks_the_real_one(tmp_path: Path) -> None:
    for name, expected in (("", DEFAULT_MODEL), ("claude-opus-5-5", "claude-opus-5-5")):
        catalogue = choose(settings(tmp_path, name, key=KEY))
        model = catalogue.main.model
        assert isinstance(model, LoadingModel)
        assert isinstance(await model.model(), AnthropicModel)
        assert catalogue.main.name == model.name == (await model.model()).name == expected
        assert not model.is_free
        await catalogue.close()


def test_kind_tier_and_agent_choose_in_that_order(tmp_path: Path) -> None:
    """C-1: what is left away is answered by the same model."""
    rehearsal = {"provider": "rehearsal"}
    names = ("big", "small", "own", "reading")
    models = {name: rehearsal | {"context_tokens": 2000 + i} for i, name in enumerate(names)}
    known = settings(
        tmp_path,
        "big",
        model={"cheap": "small", "profiles": {"reader": "reading"}},
        models=models,
        agents={"coach": {"model": "own"}},
    )
    catalogue = choose(known)
    for agent, kind, name in (
        ("vigil", "channel", "big"),
        ("vigil", "worker", "small"),
        ("vigil", "reader", "reading"),
        ("coach", "channel", "own"),
        ("coach", "worker", "small"),
        ("coach", "reader", "reading"),
    ):
        thread = "t1" if kind == "channel" else f"_{kind}-x1"
        key = SessionKey.of("ann", agent, thread)
        assert catalogue.model_for(key, profile_of(kind)).name == name
        assert context_tokens_of(known.config, key) == models[name]["context_tokens"]
    alone = choose(settings(tmp_path, "big", models=models))
    assert alone.model_for(SessionKey.of("ann", "vigil", "t1"), profile_of("worker")).name == "big"


async def test_a_server_of_ones_own_needs_no_key(tmp_path: Path) -> None:
    async with messages_api() as api:
        rows = {"local": {"model": "qwen3:8b", "base_url": api.url}}
        for known in (
            settings(tmp_path, "qwen3:8b", url=api.url),
            settings(tmp_path, "local", models=rows),
            # A key for Anthropic isn't sent to another.
            settings(tmp_path, "local", key=KEY, models=rows),
        ):
            catalogue = choose(known)
            answer = await catalogue.main.model.answer(REQUEST, lambda _: None)
            await catalogue.close()
            assert answer.blocks == (TextBlock(text="I heard you: hello"),)
            assert api.requests[-1].headers["authorization"] == "Bearer none"
            assert api.last["model"] == "qwen3:8b"


async def test_a_key_comes_from_the_file_of_its_section(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    async with messages_api() as api:
        row = {"base_url": api.url, "api_key_file": "key"}
        catalogue = choose(settings(tmp_path, "mine", models={"mine": row}))
        await catalogue.main.model.answer(REQUEST, lambda _: None)
        await catalogue.close()
        assert api.requests[-1].headers["authorization"] == f"Bearer {KEY}"
        assert api.last["model"] == "mine"


async def test_failures_name_the_settings_of_the_model(tmp_path: Path) -> None:
    """Of its section, or the variable that its provider's key is in."""
    (tmp_path / "key").write_text(f"{KEY}\n")
    async with messages_api() as messages, chat_api() as chat:
        rows = {
            "local": {"base_url": messages.url},
            "other": {"provider": "openai", "base_url": chat.url, "api_key_file": "key"},
        }
        for name, api in (("local", messages), ("other", chat)):
            catalogue = choose(settings(tmp_path, name, models=rows))
            for status, expected in (
                (401, f"check models.{name}.api_key_file"),
                (404, f"the model '{name}'; check models.{name}.model and models.{name}.base_url"),
            ):
                api.replies.append(fails(status))
                with pytest.raises(ModelError, match=expected):
                    await catalogue.main.model.answer(REQUEST, lambda _: None)
            await catalogue.close()
        assert chat.requests[-1].headers["authorization"] == f"Bearer {KEY}"


async def test_openai_is_a_provider_with_a_key_of_its_own(tmp_path: Path) -> None:
    rows = {"gpt": {"provider": "openai", "model": "gpt-5.5"}}
    with pytest.raises(ConfigError, match=r"^model\.main: model 'gpt' needs OPENAI_API_KEY or"):
        choose(settings(tmp_path, "gpt", key=KEY, models=rows))
    (tmp_path / "vigil.toml").write_text(
        '[model]\nmain = "gpt"\n[models.gpt]\nprovider = "openai"\nmodel = "gpt-5.5"\n'
    )
    known = load({"OPENAI_API_KEY": KEY}, home=tmp_path)
    catalogue = choose(known)
    model = catalogue.main.model
    assert isinstance(model, LoadingModel)
    loaded = await model.model()
    assert isinstance(loaded, OpenAIModel)
    assert (loaded.name, loaded.server) == ("gpt-5.5", ("api.openai.com", 443))
    assert catalogue.main.provider == "openai"
    await catalogue.close()
    assert KEY not in repr(known)


def test_a_provider_without_its_sdk_says_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    rows = {"gpt": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1"}}
    wanted = r"^model 'gpt' needs httpx2: pip install vigil-agents$"
    with pytest.raises(ConfigError, match=wanted):
        choose(settings(tmp_path, "gpt", models=rows))


def test_a_row_may_pin_a_model_that_no_setting_names(tmp_path: Path) -> None:
    """J-2: one whose key is missing doesn't keep the others from starting; nor is it pinned."""
    models = {"big": {"provider": "rehearsal"}, "own": {"provider": "rehearsal"}, "far": {}}
    catalogue = choose(settings(tmp_path, "big", models=models))
    run, cron = SessionKey.of("ann", "vigil", "_cron-x1"), profile_of("cron")
    named = [catalogue.model_for(run, cron, name).name for name in ("own", "far", "gone", "")]
    assert named == ["own", "big", "big", "big"]


def test_two_names_of_a_model_are_opened_once(tmp_path: Path) -> None:
    """The empty one is a name, too."""
    for key, main, cheap in ((None, "rehearsal", "rehearsal"), (KEY, "", DEFAULT_MODEL)):
        catalogue = choose(settings(tmp_path, main, key, model={"cheap": cheap}))
        session = SessionKey.of("ann", "vigil", "t1")
        assert catalogue.model_for(session, profile_of("worker")) is catalogue.main


def test_a_kind_that_is_none_refuses_to_start(tmp_path: Path) -> None:
    wanted = r"^model\.profiles\.workr: no kind of session; there are: .*worker"
    with pytest.raises(ConfigError, match=wanted):
        choose(settings(tmp_path, model={"profiles": {"workr": "rehearsal"}}))


@pytest.mark.parametrize("error", [ImportError("no pydantic"), ValueError("no pydantic")])
async def test_an_sdk_that_can_not_be_loaded_is_told(error: Exception) -> None:
    """It is noticed by the first call: no crash, and nothing that another try would change."""

    def load() -> LanguageModel:
        raise error

    model = LoadingModel("m", load)
    with pytest.raises(ModelError, match="pydantic") as caught:
        await model.answer(REQUEST, lambda _: None)
    assert not caught.value.is_retryable
    await model.close()


def test_a_start_does_not_wait_for_the_sdk() -> None:
    """It takes seconds: the first run, without a real model, needs none of it; and whoever takes
    over after a kill is there before it is imported (X-5)."""
    check = (
        "import sys, threading; from pathlib import Path; from vigil.settings import config; "
        "from services.cortex import choice; from tests.support.stack import settings_of; "
        "import msgspec; home = Path('/nowhere'); "
        "assert choice.choose(config.load({}, home=home)).main.name == 'rehearsal'; "
        "assert 'anthropic' not in sys.modules; settings = msgspec.structs.replace("
        "settings_of(home, model={'main': 'claude-m'}), anthropic_api_key='k'); "
        "threading.Thread.start = lambda self: None; "
        "assert choice.choose(settings).main.name == 'claude-m'; "
        "assert 'anthropic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)


@pytest.mark.parametrize(
    ("name", "key", "url", "named"),
    [
        ("claude-opus-5-5", None, None, "ANTHROPIC_API_KEY"),
        ("", "sk-ant-abc\ndef", None, "ANTHROPIC_API_KEY"),
        ("", "sk-ant-äbc", None, "ANTHROPIC_API_KEY"),
        ("m", None, "localhost:8977", "ANTHROPIC_BASE_URL"),
        ("smrat", KEY, None, r"^model\.main: 'smrat' is neither a \[models.NAME\].*nofile"),
        ("nofile", KEY, None, r"^models\.nofile\.api_key_file: .*no/such can't be read"),
        ("binary", KEY, None, r"^models\.binary\.api_key_file: .*it is no text"),
        ("empty", KEY, None, r"^models\.empty\.api_key_file: the file is empty"),
        ("pasted", KEY, None, r"^models\.pasted\.api_key_file: has characters that no key has"),
    ],
)
def test_what_could_not_work_refuses_to_start(
    tmp_path: Path, name: str, key: str | None, url: str | None, named: str
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "pasted").write_text("one\ntwo")
    files = {"nofile": "no/such", "binary": "binary", "empty": "empty", "pasted": "pasted"}
    rows = {name: {"api_key_file": file} for name, file in files.items()}
    with pytest.raises(ConfigError, match=named) as caught:
        choose(settings(tmp_path, name, key=key, url=url, models=rows))
    assert key is None or key not in str(caught.value)
    if name:
        in_agent = settings(tmp_path, "rehearsal", key, url, models=rows, agent={"model": name})
        with pytest.raises(ConfigError):
            choose(in_agent)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ('base_url = "localhost:1/v1"', "models.m.base_url: must be http:// or"),
        ('base_url = "http://"', "models.m.base_url: must be http:// or"),
        ('base_url = "http://x:99999"', "models.m.base_url: must be http:// or"),
        ('base_url = "http://me:secret@x"', "models.m.base_url: must hold no user, password"),
        ("context_tokens = 1999", "models.m.context_tokens: must be 0, or at least 2000"),
        ('provider = "cohere"', "Invalid enum value 'cohere' - at `$.models.m.provider`"),
        ('modle = "x"', "unknown field `modle`"),
    ],
)
def test_a_section_that_can_not_be_is_named(tmp_path: Path, row: str, named: str) -> None:
    (tmp_path / "vigil.toml").write_text(f"[models.m]\n{row}\n")
    with pytest.raises(ConfigError) as caught:
        load({}, home=tmp_path)
    assert named in str(caught.value)
    assert "secret" not in str(caught.value)
