"""A second agent, made and changed by a command: in the file, with its comments, and at once."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from services.cortex.policy import others_of
from tests.support.pauses import pauses
from tests.support.scripted_model import ScriptedModel, say
from tests.support.stack import running_stack
from tests.support.talk import Talk
from vigil.cli.app import app, commands
from vigil.errors import VigilError
from vigil.settings import config
from vigil.settings.live import followed
from vigil.subjects import SessionKey

BEFORE = """\
# Mine, written by hand.
[agent]
authority = "observe"   # careful

[person]
timezone = "Europe/Vienna"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VIGIL_HOME", str(tmp_path))
    monkeypatch.setattr(followed, "POLL_S", 0.02)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    commands(app)(["agents", *words, "--json"], standalone_mode=False)
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_an_agent_is_made_and_changed_in_the_file_which_keeps_its_comments(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `[agent]` says for all holds for the new one as well, since a section replaces it."""
    (file := home / "vigil.toml").write_text(BEFORE, "utf-8")
    made = run(
        capsys, "add", "coach", "--look", "https://a.example", "--file", "ROLE.md=You coach."
    )
    assert (made["authority"], made["looks"]) == ("observe", ["https://a.example"])
    assert (home / "agents" / "coach" / "ROLE.md").read_text("utf-8").strip() == "You coach."
    run(capsys, "set", "coach", "--authority", "act", "--file", "SOUL.md=Brief.")
    text = file.read_text("utf-8")
    assert text.startswith(BEFORE)
    section = tomllib.loads(text)["agents"]["coach"]
    assert section == {"authority": "act", "looks": ["https://a.example"]}
    assert {one["name"] for one in run(capsys, "list")["agents"]} == {"coach", "vigil"}
    # One of which nothing is said but its name is an agent that the others can hand something.
    run(capsys, "add", "cook")
    assert others_of(config.load().config, SessionKey("me", "vigil", "main")) == ("coach", "cook")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["add", "vigil"], "there is an agent called vigil already"),
        (["add", "team"], "there is an agent called team already"),
        (["add", "a.b"], "name: "),
        (["add", "x", "--file", "PLAN.md=x"], "PLAN.md: an agent has no such file"),
        (["add", "x", "--file", "ROLE.md"], "is no NAME.md=TEXT"),
        (["add", "x", "--look", "nonsense"], "looks"),
        (["set", "x", "--authority", "act"], "there is no agent called x"),
        (["set", "vigil"], "say what to change"),
        (["add", "x", "--channel", "pager"], "there is no channel 'pager'; there is:"),
    ],
)
def test_what_is_no_agent_is_refused_and_nothing_written(
    home: Path, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "vigil.toml").write_text(BEFORE, "utf-8")
    with pytest.raises(VigilError) as refused:
        run(capsys, *words)
    assert reason in str(refused.value)
    assert (home / "vigil.toml").read_text("utf-8") == BEFORE
    assert not (home / "agents").exists()


async def test_a_running_vigil_takes_a_new_agent_in(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its conversation is that of the agent as the file has it now, and so are its cycles."""
    ScriptedModel(lambda request: say(f"{request.situation.agent} here")).install(monkeypatch)
    async with running_stack(home, ("cortex", "scheduler", "delivery")) as stack:
        await asyncio.to_thread(
            run, capsys, "add", "coach", "--authority", "act", "--look", "feed:https://a.example/x"
        )
        async with asyncio.timeout(30):
            for name in ("cortex", "scheduler"):
                pause_s = pauses()
                while "coach" not in stack.contexts[name].settings.config.agents:
                    await asyncio.sleep(next(pause_s))
        scheduler = stack.contexts["scheduler"].settings.config
        assert scheduler.agent_of("coach").authority == "act"
        talk = await Talk.open(stack, "ann:coach:t1")
        await talk.ended(await talk.say("hello"))
        await talk.until(lambda: talk.texts == ["coach here"])
        await talk.close()
