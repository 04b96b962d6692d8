"""The commands against a running Vigil: what they print, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from tests.support.cli import COMMAND, Cli, eventually, running_vigil
from tests.support.pictures import pdf
from vigil import topology
from vigil.cli import options

SERVICES = {"gateway", "cortex", "memory", "scheduler", "executor", "delivery"}


def test_each_service_can_be_served() -> None:
    """P-2: `vigil serve` knows every service of the topology."""
    assert get_args(options.Service) == topology.SERVICES
    assert set(topology.SERVICES) == SERVICES


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with running_vigil(tmp_path_factory.mktemp("cli") / "home") as running:
        yield running


def token_of(cli: Cli, user: str, *args: str) -> str:
    return str(cli.json("token", "create", "--user", user, *args)["token"])


def test_status_tells_of_services_that_do_not_answer(tmp_path: Path) -> None:
    """P-2: each service has a row, also the one that is gone; scripts see it by the exit code."""
    with running_vigil(tmp_path / "home", "--processes=6") as running:
        pid = running.run_state.services["cortex"]
        os.kill(pid, signal.SIGSTOP)
        try:
            silent = running("status", "--json", code=3)
        finally:
            os.kill(pid, signal.SIGCONT)
        found = {s["service"]: s for s in json.loads(silent.stdout)["services"]}
        assert set(found) == SERVICES | {"broker"}
        assert (found["cortex"]["pid"], found["cortex"]["ready"]) == (None, False)
        assert found["gateway"]["ready"]


def test_status_lists_each_service(cli: Cli) -> None:
    """P-2: pid, version and readiness of each."""
    found = cli.json("status")
    assert found["running"] is True
    assert {s["service"] for s in found["services"]} == SERVICES | {"broker"}
    for service in found["services"]:
        assert service["ready"] is True
        assert service["version"]
    pids = {service["service"]: service["pid"] for service in found["services"]}
    state = cli.run_state
    assert pids == {"broker": state.broker_pid} | state.services
    assert {name for name in SERVICES if pids[name] != state.pid} == {"cortex"}
    plain = cli("status").stdout
    assert all(name in plain for name in SERVICES)
    assert "rehearsal" in plain
    assert "\x1b" not in plain


def test_send_prints_the_answer(cli: Cli) -> None:
    """I-5: text, JSON, and stdin."""
    assert "hello there" in cli("send", "hello there").stdout
    found = cli.json("send", "hello", "--thread", "s1")
    assert found["session_key"] == "me:vigil:s1"
    assert found["response"] == "".join(m["text"] for m in found["messages"])
    assert "from a pipe" in cli("send", "-", stdin="from a pipe").stdout


def test_send_attaches_files(cli: Cli, tmp_path: Path) -> None:
    """They are stored with the message; one that is none is named as what is wrong."""
    (tmp_path / "plan.pdf").write_bytes(pdf(2))
    (tmp_path / "notes.png").write_bytes(b"no image\0")
    plan, notes = (str(tmp_path / name) for name in ("plan.pdf", "notes.png"))
    cli("send", "fits?", "--thread", "s3", "--attach", plan)
    (said,) = [r for r in tail(cli, "me:vigil:s3") if r["kind"] == "in.said.user"]
    assert "plan.pdf" in json.dumps(said)
    assert "must be a PNG" in cli("send", "x", "--attach", notes, code=2).stderr


def test_send_without_waiting_is_stored_once_for_each_key(cli: Cli) -> None:
    """P-5: 202 with the event's id; a repeat with the same key is the same event."""
    args = ("send", "hello", "--thread", "s2", "--no-wait", "--idempotency-key", "k1")
    first, second = cli.json(*args), cli.json(*args)
    assert first == second
    assert cli("send", "hi", "--idempotency-key", "k1", code=2).stdout == ""
    events = [r for r in tail(cli, "me:vigil:s2") if r["kind"] == "in.said.user"]
    assert len(events) == 1


def tail(cli: Cli, key: str) -> list[dict]:
    none = cli("tail", "session", "me:vigil:nope", "--no-follow", code=3)
    assert none.stderr.startswith("vigil: nothing is recorded of me:vigil:nope")
    done = cli("tail", "session", key, "--no-follow", "--json")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_sessions_and_timers(cli: Cli) -> None:
    """P-2, S-8: what is due is listed, and can be cancelled."""
    cli("send", "remind me in 600 seconds to stretch", "--thread", "t1")
    keys = [s["session_key"] for s in cli.json("sessions")["sessions"]]
    assert "me:vigil:t1" in keys
    assert "me:vigil:t1" in cli("sessions").stdout
    (timer,) = cli.json("timers", "me:vigil:t1")["timers"]
    assert timer["session_key"] == "me:vigil:t1"
    assert datetime.fromisoformat(timer["fire_at"]).tzinfo is not None
    assert timer["keep"] is True
    assert timer in cli.json("timers")["timers"]
    assert "stretch" in cli("timers").stdout
    cli("timers", "me:vigil:t1", "--cancel", timer["timer_id"])
    eventually(lambda: cli.json("timers", "me:vigil:t1")["timers"] == [])
    assert cli("timers", "--cancel", "x", code=2).stdout == ""


def test_chat_from_a_pipe_answers_each_line_and_waits_for_follow_ups(cli: Cli) -> None:
    """P-2, S-9: lines in, answers out, then the tagged follow-up; nothing twice."""
    lines = "hello\n\nremind me in 1 seconds to stretch\n"
    done = cli("chat", "--thread", "c1", "--wait", "4", stdin=lines)
    out = done.stdout.splitlines()
    assert len(out) == 3, out
    assert out[0].startswith("vigil> ")
    assert "hello" in out[0]
    assert out[2] == "vigil (Agent follow-up)> Reminder: stretch"
    assert "Go on with" not in done.stderr, "a thread was named"


def test_a_pipe_gives_no_orders_and_says_so(cli: Cli) -> None:
    """What is in it may be by anybody: all is said as it is, and whoever meant an order is told."""
    done = cli("chat", "--thread", "c4", stdin="/delete yes\n/etc/hosts\n/bye\n")
    assert ['You said: "/delete yes"' in done.stdout, "/etc/hosts" in done.stdout] == [True, True]
    told = [line for line in done.stderr.splitlines() if "only at a terminal" in line]
    assert [line.split()[0] for line in told] == ["/delete", "/bye"]


def test_chat_without_a_thread_is_at_home(cli: Cli) -> None:
    """L-11: what was said there before is known, and not shown again."""
    first = cli("chat", stdin="remind me in 3600 seconds to go home\n")
    again = cli("chat", "--thread", "main", stdin="what is pending\n")
    assert "Go on with" not in first.stderr
    assert "go home (followup-1)" in again.stdout
    assert "I'll remind you" not in again.stdout
    cli("chat", "--thread", "t1", "--new", code=2)


def test_a_new_chat_tells_how_to_go_on_with_it(cli: Cli) -> None:
    """S-2: unique each time."""
    first, second = (cli("chat", "--new", stdin="hi\n").stderr for _ in range(2))
    assert "vigil chat --thread chat-" in first
    assert first != second
    thread = first.split("--thread ")[1].strip()
    again = cli("chat", "--thread", thread, stdin="what is pending\n")
    assert len(again.stdout.splitlines()) == 1, "what was acknowledged is not shown again"


def test_what_was_said_meanwhile_appears_on_the_next_connection(cli: Cli) -> None:
    """S-10: the message waits for this client, and arrives once."""
    cli("chat", "--thread", "c2", stdin="remind me in 1 seconds to drink\n")
    key = "me:vigil:c2"
    eventually(
        lambda: any("drink" in str(r) and r["kind"][:4] == "out." for r in reminders(cli, key))
    )
    first = cli("chat", "--thread", "c2", "--wait", "1").stdout
    second = cli("chat", "--thread", "c2", "--wait", "1").stdout
    assert first.splitlines() == ["vigil (Agent follow-up)> Reminder: drink"]
    assert second == ""


def reminders(cli: Cli, key: str) -> list[dict]:
    return [r for r in tail(cli, key) if r["kind"].startswith("out.") and "tag" in r["data"]]


def test_chat_json_is_one_message_a_line(cli: Cli) -> None:
    """P-2: JSON lines for streams."""
    done = cli("chat", "--thread", "c3", "--json", stdin="one\ntwo\n")
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    assert [f["type"] for f in frames] == ["message", "message"]
    assert len({f["id"] for f in frames}) == 2


def test_ctrl_c_ends_a_chat_whose_input_says_nothing(cli: Cli) -> None:
    """P-2: exit code 130, at once, while stdin stays open."""
    process = cli.start("chat", "--thread", "c4")
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("hello\n")
        process.stdin.flush()
        assert "hello" in process.stdout.readline()
        process.send_signal(2)
        assert process.wait(10) == 130
    finally:
        process.kill()
        process.communicate()


def test_tail_shows_records_as_they_come(cli: Cli) -> None:
    """P-2: it follows, readable; Ctrl-C ends it with 130."""
    cli("send", "first", "--thread", "f1")
    process = cli.start("tail", "session", "me:vigil:f1")
    try:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(3)]
        assert "first" in seen[0]
        assert any("turn" in line and "+send_message" in line for line in seen)
        cli("send", "second", "--thread", "f1")
        while "second" not in (line := process.stdout.readline()):
            assert line
        process.send_signal(2)
        assert process.wait(10) == 130
    finally:
        process.kill()
        process.communicate()


def test_pause_and_resume(cli: Cli) -> None:
    """S-11: one switch for everything proactive, shown by status; an admin's matter."""
    cli("pause")
    try:
        assert cli.json("status")["paused"]["by"] == "me"
        assert "PAUSED" in cli("status").stdout
    finally:
        cli("resume")
    assert cli.json("status")["paused"] is None
    ann = token_of(cli, "ann")
    cli("pause", code=4, VIGIL_TOKEN=ann)
    cli("pause", "--agent", "vigil", code=4, VIGIL_TOKEN=ann)
    assert "vigil resume --agent vigil --mine" in cli("pause", "--agent", "vigil", "--mine").stderr
    try:
        told = "PAUSED: agent vigil for you since"  # the gateway sees it in a moment
        eventually(lambda: told in cli("status").stdout)
    finally:
        cli("resume", "--agent", "vigil", "--mine")
    cli("pause", "--mine", VIGIL_TOKEN=ann)
    assert json.loads(cli("me", "--json", VIGIL_TOKEN=ann).stdout)["pause"] == "on"
    cli("resume", "--mine", VIGIL_TOKEN=ann)


def test_status_tells_of_every_loop(cli: Cli) -> None:
    """P-2: bulletin, autonomy and what else the system keeps up for who has talked."""
    cli("send", "hello", "--thread", "loops")
    kinds = {"autonomy", "bulletin", "maintenance"}
    found: list[dict[str, Any]] = []

    def are_told() -> bool:
        found[:] = cli.json("status")["loops"]
        return kinds <= {one["kind"] for one in found if one["owner"] == "me"}

    eventually(are_told)
    states = {one["kind"]: one["state"] for one in found if one["owner"] == "me"}
    assert set(states.values()) <= {"off", "running", "waiting"}
    assert all(one["next_at"] for one in found if one["state"] == "waiting")
    assert "loop bulletin: " in cli("status").stdout


def test_stop_asks_the_session(cli: Cli) -> None:
    """S-11: a control event in the session's log."""
    cli("send", "hello", "--thread", "st1")
    assert cli.json("stop", "me:vigil:st1")["stopped"] is True
    eventually(lambda: any(r["kind"] == "in.control" for r in tail(cli, "me:vigil:st1")))


def test_tokens(cli: Cli) -> None:
    """X-4: made by the command line, for one user, with an end; revoked at once."""
    made = cli.json("token", "create", "--user", "ann", "--name", "laptop", "--expires-days", "1")
    token = made["token"]
    assert made["expires_at"] is not None
    assert made["timezone"] == cli.json("me")["timezone"], "that of all who set none"
    cli("me", "--timezone", "Asia/Tokyo", VIGIL_TOKEN=token)
    told = cli("token", "create", "--user", "ann", "--name", "phone")
    assert "ann's clocks go by Asia/Tokyo" in told.stderr
    listed = [t for t in cli.json("token", "list")["tokens"] if t["user"] == "ann"]
    laptop = next(t for t in listed if t["name"] == "laptop")
    assert token not in cli("token", "list").stdout
    assert "hi" in cli("send", "hi", VIGIL_TOKEN=token).stdout
    assert cli("sessions", VIGIL_TOKEN=token).stdout.count("ann:vigil:") == 1
    foreign = cli("tail", "session", "me:vigil:s1", "--no-follow", code=3, VIGIL_TOKEN=token)
    assert foreign.stdout == ""
    cli("token", "revoke", laptop["id"][:16])
    cli("send", "hi", code=4, VIGIL_TOKEN=token)
    cli("token", "revoke", laptop["id"], code=3)
    cli("token", "create", "--user", "not a name", code=2)


def test_a_token_can_be_revoked_by_its_text(cli: Cli) -> None:
    """X-4: what a person has at hand when it leaked."""
    token = token_of(cli, "bob")
    cli("token", "revoke", token)
    cli("sessions", code=4, VIGIL_TOKEN=token)


MAIL: Final = ("mail", "add", "post", "--address", "v@a.example", "--smtp", "mail.a.example")


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (("tail", "session", "me:vigil", "--no-follow"), 2, "session_key"),
        (("tail", "session", "me:vi.gil:t", "--no-follow"), 2, "agentId"),
        (("stop", "me:vigil:*"), 2, "threadId"),
        (("chat", "--thread", "_autonomy"), 2, "thread"),
        (("chat", "--thread", "a b"), 2, "thread"),
        (("send", ""), 2, ""),
        (("tasks", "add", "x", "--priority", "urgent"), 2, "'--priority': 'urgent' is not one of"),
        (("no-such-command",), 2, "no-such-command"),
        (
            ("cron", "add", "daily", "Look"),
            2,
            "cron or interval_s, at, after, on_fact or calendar must",
        ),
        ((*MAIL, "--imap", "mail.a.example:99999"), 2, "is not HOST or HOST:PORT"),
        ((*MAIL, "--imap", "mail a.example"), 2, "is not HOST or HOST:PORT"),
        (("timers", "me:vigil:nothing", "--cancel", "x"), 3, ""),
    ],
)
def test_bad_input_is_refused_with_a_code(
    cli: Cli, args: tuple[str, ...], code: int, word: str
) -> None:
    """X-6, P-2: documented exit codes, the field named, nothing on stdout."""
    done = cli(*args, code=code, stdin="hi\n")
    assert word in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_foreign_or_missing_token_is_code_4(cli: Cli) -> None:
    """X-4: for HTTP and for the socket."""
    wrong = "pat_" + "0" * 43
    for args in (("sessions",), ("status",), ("chat",)):
        done = cli(*args, code=4, VIGIL_TOKEN=wrong, stdin="hi\n")
        assert "Traceback" not in done.stderr


def test_vigil_url_leads_elsewhere(cli: Cli) -> None:
    """P-3: VIGIL_URL and VIGIL_TOKEN are enough, from any home."""
    elsewhere = Cli(cli.home.parent / "other")
    token = (cli.home / "token").read_text().strip()
    done = elsewhere("send", "hello", VIGIL_URL=cli.run_state.url, VIGIL_TOKEN=token)
    assert "hello" in done.stdout
    assert not elsewhere.home.exists()
    for url, code in (("http://127.0.0.1:9", 3), ("ftp://x", 1), ("nonsense", 1)):
        elsewhere("sessions", code=code, VIGIL_URL=url, VIGIL_TOKEN=token)


def test_help_imports_nothing_heavy_and_documents_the_exit_codes(cli: Cli) -> None:
    """P-2: it's there at once."""
    text = " ".join(cli("--help").stdout.split())
    assert "124 no answer in time" in text
    heavy = "import sys, vigil.cli; print([m for m in ('nats','fastapi','anthropic','rich.console')"
    code = f"{heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command", ["cron list", "memory list --type preference --limit 5", "send hello"]
)
def test_a_command_imports_nothing_heavy(cli: Cli, command: str) -> None:
    """P-2: Typer would check each option by Pydantic, which is a sixth of a command's time."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "vigil.cli", *command.split()],
        capture_output=True,
        text=True,
        env=cli.environ,
        timeout=60,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    heavy = {"pydantic", "pydantic_core", "fastapi", "nats", "anthropic", "numpy", "rich.console"}
    assert "vigil.cli.app" in imported
    assert sorted(imported & heavy) == []


def test_version_and_completion(cli: Cli) -> None:
    """P-2: version, and completion for the shells."""
    assert cli.json("version")["vigil"] in cli("--version").stdout
    # It looks at what it was started from: whoever runs the tests may be no shell.
    asked = subprocess.run(
        ["bash", "-c", f"{' '.join(COMMAND)} --show-completion; true"],
        capture_output=True,
        text=True,
        env=cli.environ,
        timeout=60,
        check=True,
    )
    assert "complete" in asked.stdout
