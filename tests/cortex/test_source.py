"""What a memory comes from is decided by the core, from what a session is and what began it."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from services.cortex.core import Policy
from services.cortex.core.draft import source
from services.cortex.core.draft.kinds import profile_of
from services.executor.work import start_of as child_start_of
from services.memory.work import question_of
from services.scheduler.tasks import start_of as task_start_of
from tests.cortex.driver import START, Driver, answer, call
from vigil.contracts import (
    BoardChange,
    BoardTask,
    CallTool,
    Control,
    ControlPayload,
    SpawnSession,
    Start,
    decode_turn,
    encode,
)
from vigil.errors import InvalidInput
from vigil.memory.operations.save import Save
from vigil.subjects import SessionKey

JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


def key_of(kind: str, id_: str = "1f") -> SessionKey:
    key = SessionKey("ann", "vigil", "t1")
    return key if kind == "channel" else key.of_kind(kind, id_)


def session(kind: str, start: Start | None, *calls: Any) -> Driver:
    """A session of that kind, whose model asks for these calls at its first step."""
    replies = [answer(*calls), answer("done")]
    policy = Policy(profile=profile_of(kind), depth_max=9)
    driver = Driver(lambda _: replies.pop(0) if replies else answer("ok"), policy)
    driver.key = str(key_of(kind))
    if start is None:
        driver.user("go")
    else:
        payload = ControlPayload(op="start", start=start)
        driver.feed(
            Control(id="s1", session_key=driver.key, created_at=driver.now, payload=payload)
        )
    return driver


def effects(driver: Driver, kind: type[Any]) -> list[Any]:
    return [effect for turn in driver.turns for effect in turn.effects if isinstance(effect, kind)]


@pytest.mark.parametrize(
    ("kind", "start", "expected"),
    [
        ("channel", None, "chat:t1"),
        ("planner", Start(prompt="p"), "job:1f"),
        ("planner", Start(prompt="p", source="chat:t1", task_id="9"), "job:1f"),
        ("worker", Start(prompt="p", task_id="9"), "task:9"),
        ("worker", Start(prompt="p", source="chat:t1"), "chat:t1"),
        ("worker", Start(prompt="p", source="chat:t1", task_id="9", goal="5"), "goal:5"),
        ("errand", Start(prompt="p", source="job:7"), "job:7"),
        ("cron", Start(prompt="p", source="cron:7", row="7"), "cron:7"),
        ("reader", Start(prompt="p"), "reader"),
        ("worker", None, "worker"),
    ],
)
def test_the_source_follows_from_the_kind_and_what_began_it(
    kind: str, start: Start | None, expected: str
) -> None:
    assert source.of(profile_of(kind), key_of(kind), start) == expected


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=3), JSON)
def test_no_argument_of_a_model_changes_the_source(given_: dict[str, Any], forged: Any) -> None:
    """L-20: what it asks for goes as it is; the source stands beside it, and alone counts."""
    arguments = {"content": "Ann likes tea", **given_, "source": forged}
    driver = session("channel", None, call("memory_save", **arguments))
    for effect in effects(driver, CallTool):
        assert effect.payload.source == "chat:t1"
        try:
            asked = question_of(key_of("channel"), effect)
        except InvalidInput:
            continue
        assert isinstance(asked, Save)
        assert asked.source == "chat:t1"


@pytest.mark.parametrize("root", ["", "t1"])
@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ({"source": "job:7"}, "job:7"),
        ({"task_id": "9"}, "task:9"),
        ({"source": "cortex:mind", "goal": "5"}, "goal:5"),
    ],
)
def test_children_take_on_their_parents_source(
    of: dict[str, str], expected: str, root: str
) -> None:
    """However deep: what the first was begun for is what all of it comes from."""
    start = Start(prompt="p", allowance=5, row="briefing", root=root, **of)
    parent = session("branch", start, call("spawn_worker", task="look"))
    (spawned,) = effects(parent, SpawnSession)
    begun = child_start_of(SessionKey.parse(parent.key), spawned, 9, now=START).payload.start
    assert begun is not None
    assert begun.row == "briefing", "whose budget it has a part in"
    assert begun.goal == of.get("goal", ""), "whose grants hold for it"
    assert begun.root == (root or SessionKey.parse(parent.key).thread)
    child = session("worker", begun, call("memory_save", content="x"))
    (saved,) = effects(child, CallTool)
    assert saved.payload.source == expected


def test_workers_of_tasks_that_a_run_made_count_as_its_rows_and_act_for_its_goal() -> None:
    """L-21: or a row with a budget of its own could have anything done by the board."""
    start = Start(prompt="p", source="cron:7", row="7", row_tokens=5000, is_ordered=True, goal="5")
    run = session("cron", start, call("task_create", title="Tidy up"))
    (made,) = effects(run, BoardChange)
    assert isinstance(made.payload.entity, BoardTask)
    task = replace(made.payload.entity, worker=str(key_of("worker")))
    begun = task_start_of(task, START).payload.start
    assert begun is not None
    assert (begun.row, begun.row_tokens, begun.goal) == ("7", 5000, "5")


def test_a_call_of_an_older_version_is_of_its_thread() -> None:
    """It was stored without a source, and may be carried out by this version."""
    driver = session("channel", None, call("memory_save", content="x"))
    turn = next(turn for turn in driver.turns if turn.effects)
    stored = json.loads(encode(turn))
    for effect in stored["effects"]:
        effect["payload"].pop("source", None)
    old = decode_turn(json.dumps(stored).encode())
    (saved,) = (effect for effect in old.effects if isinstance(effect, CallTool))
    asked = question_of(key_of("channel"), saved)
    assert isinstance(asked, Save)
    assert asked.source == "chat:t1"
