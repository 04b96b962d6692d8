"""What a newcomer sees of memory, without a key (issue 4, "Show it"; SPEC M-2, M-8, M-9, D-3)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.support.cli import Cli, running_vigil

TOLD = "remember that my locker code is 4711"
ASKED = "what is my locker code?"


def say(vigil: Cli, thread: str, text: str) -> dict[str, Any]:
    """Say something in a conversation; return the answer."""
    answer: dict[str, Any] = vigil.json("send", text, "--thread", thread)
    return answer


def knows(vigil: Cli, thread: str) -> bool:
    return "4711" in say(vigil, thread, ASKED)["response"]


def restart(vigil: Cli) -> None:
    vigil("down")
    vigil("up", "--detach")


def test_a_fact_told_in_one_conversation_is_known_in_another(tmp_path: Path) -> None:
    """M-2, M-8, M-9: told once; known elsewhere, after a restart, after its index is lost; gone
    after `forget`."""
    home = tmp_path / "home"
    with running_vigil(home) as vigil:
        told = say(vigil, "monday", TOLD)
        assert told["response"] == "I'll remember that my locker code is 4711."
        assert knows(vigil, "tuesday")

        restart(vigil)
        assert knows(vigil, "wednesday")

        vigil("down")
        shutil.rmtree(home / "memory")
        vigil("up", "--detach")
        assert knows(vigil, "thursday")

        (memory,) = vigil.json("memory", "list")["memories"]
        assert memory["content"] == "my locker code is 4711"
        assert memory["provenance"] == [told["event_id"]]
        vigil("memory", "forget", memory["id"])
        assert not knows(vigil, "friday")

        restart(vigil)
        assert not knows(vigil, "saturday")
        assert vigil.json("memory", "list")["memories"] == []


def test_nobody_else_knows_it(tmp_path: Path) -> None:
    """M-2: a query never crosses owners; another agent of the same person has its own memory."""
    with running_vigil(tmp_path / "home") as vigil:
        say(vigil, "t", TOLD)
        other = {"VIGIL_TOKEN": vigil.json("token", "create", "--user", "other")["token"]}
        done = vigil("send", ASKED, "--thread", "t", **other)
        assert "4711" not in done.stdout
        done = vigil("send", ASKED, "--thread", "t", "--agent", "another")
        assert "4711" not in done.stdout
        assert knows(vigil, "u")


def test_why_tells_of_what_was_saved_and_recalled(tmp_path: Path) -> None:
    """D-3: every step of the exchange, in order."""
    with running_vigil(tmp_path / "home") as vigil:
        told = say(vigil, "monday", TOLD)
        story = vigil.json("why", told["event_id"])
        names = [step["what"] for step in story["steps"]]
        wanted = ["message.in", "turn.continued", "tool.asked", "call.claimed", "tool.result",
                  "turn.answered", "send.decided", "send.said"]  # fmt: skip
        assert [name for name in names if name in wanted] == wanted
        assert story["verdict"] == "said"
        tail = vigil("tail", "session", story["session_key"], "--no-follow").stdout
        assert "in.tool_result" in tail
        assert "memory_save" in next(line for line in tail.splitlines() if " call " in line)
        asked = say(vigil, "tuesday", ASKED)
        story = vigil("why", asked["event_id"]).stdout
        assert "Memory gave the model 1 memory" in story
