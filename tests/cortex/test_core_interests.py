"""What a cycle is to keep up with it looks at without leave, to the letter, whatever it read."""

from __future__ import annotations

from typing import Any

import pytest

from services.cortex.core import Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.policy import policy_of
from tests.cortex.driver import Driver, answer, call
from tests.cortex.test_core_readers import offered, started
from vigil.contracts import Control, ControlPayload, Start
from vigil.errors import ConfigError
from vigil.settings import config
from vigil.settings.checks import check_agent
from vigil.settings.config import Config
from vigil.settings.sections import Agent
from vigil.subjects import SessionKey

URL = "https://ci.example/main"
INTERESTS = (URL, "search:nats releases", "feed:https://a.example/feed", "mcp:ci__status")
CONFIG = Config(agents={"vigil": Agent(looks=INTERESTS)})


def cycle(wish: Any, *, is_tainted: bool = True, kind: str = "autonomy") -> Driver:
    """A cycle that makes one call."""
    named = policy_of(CONFIG, SessionKey.of("ann", "vigil", f"_{kind}-1f"))
    policy = Policy(profile=profile_of(kind), authority="observe", interests=named.interests)
    driver = Driver(None, policy)
    driver.tools = {
        one.name: one
        for one in (
            offered("ci__status", "external"),
            offered("ci__restart", "external"),
            offered("ci__drop", "destructive"),
        )
    }
    left = [answer(wish)]
    driver.brain = lambda _: left.pop(0) if left else ValueError("no report here")
    start = Start(prompt="look", is_tainted=is_tainted, allowance=9)
    payload = ControlPayload(op="start", start=start)
    driver.feed(Control(id="s", session_key=driver.key, created_at=driver.now, payload=payload))
    return driver


@pytest.mark.parametrize("interest", INTERESTS[:3])
def test_readers_of_what_is_named_start_whatever_the_cycle_read(interest: str) -> None:
    driver = cycle(call("research", task=interest))
    (begun,) = started(driver)
    assert begun.payload.prompt == interest
    assert not driver.state.approvals


@pytest.mark.parametrize(
    "task",
    [
        f"{URL}?q=secret", f"{URL} ", f" {URL}", f"{URL}\n", f"{URL}\n{URL}", URL.upper(),
        f"Read {URL}", "search:nats releases of Ann", "search:", "What is new?", "mcp:ci__restart",
    ],
)  # fmt: skip
def test_nothing_else_does_once_it_read_something(task: str) -> None:
    driver = cycle(call("research", task=task))
    assert started(driver) == []
    assert [one.tool for one in driver.state.approvals.values()] == ["research"]


def test_other_sessions_have_no_interests() -> None:
    assert policy_of(CONFIG, SessionKey.of("ann", "vigil", "t1")).interests == frozenset()
    assert policy_of(CONFIG, SessionKey.of("ann", "other", "_autonomy-1f")).interests == frozenset()
    assert not started(cycle(call("research", task=URL), kind="worker"))


@pytest.mark.parametrize(
    ("name", "given", "is_tainted", "runs"),
    [
        ("ci__status", {}, True, True),
        ("ci__status", {"url": "secret"}, True, False),
        ("ci__status", {"url": "main"}, False, True),
        ("ci__restart", {}, False, False),
        ("ci__drop", {}, False, False),
    ],
)
def test_a_tool_that_is_named_is_asked(
    name: str, given: dict[str, str], *, is_tainted: bool, runs: bool
) -> None:
    """With arguments only while nothing from outside had a part."""
    driver = cycle(call(name, **given), is_tainted=is_tainted)
    assert bool(driver.called) is runs
    assert bool(driver.state.approvals) is not runs


@pytest.mark.parametrize(
    ("looks", "reason"),
    [
        (["command:env"], "must be an address"),
        (["files:*"], "must be an address"),
        (["http://127.0.0.1/"], "127.0.0.1"),
        (["nonsense"], "nonsense"),
        (["search: "], "one line"),
        (["search:"], "must say what"),
        (["mcp:status"], "no tool's name"),
        ([f"{URL}\n"], "one line"),
        ([URL, URL], "twice"),
        (["search:" + "x" * 500], "at most 500"),
        ([f"search:{n}" for n in range(51)], "at most 50"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_at_start(looks: list[str], reason: str) -> None:
    found = config.read({"agent": {"looks": looks}})
    with pytest.raises(ConfigError, match=reason):
        check_agent("agent", found.agent)
