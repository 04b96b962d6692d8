"""`vigil jobs` against a real Vigil: run, watch, show, cancel, again, skills (P-2, J-1)."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli, eventually, running_vigil
from tests.support.jobs import shell, steps
from tests.support.started import Started


@pytest.fixture(scope="module")
def vigil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with running_vigil(tmp_path_factory.mktemp("jobs") / "home") as cli:
        yield cli


def test_a_job_is_run_and_watched(vigil: Cli) -> None:
    """Data goes to stdout, what a person watches to stderr; exit code 0 for success."""
    done = vigil("jobs", "run", "keep-notes", "--input", "milk\nbread", "--wait")
    (id_,) = done.stdout.split()
    lines = done.stderr.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == [
        "1/3 remember done", "2/3 remember done", "3/3 list_memory done",
    ]  # fmt: skip
    assert lines[3] == "succeeded: 3 of 3 steps"

    shown = vigil("jobs", "show", id_).stdout
    assert "1. remember  done" in shown
    assert '{"text":"milk"}' in shown
    listed = vigil.json("jobs")["jobs"]
    assert (listed[0]["id"], listed[0]["status"]) == (id_, "succeeded")
    assert id_ in vigil("jobs", "list", "--status", "succeeded").stdout
    assert vigil.json("jobs", "--status", "failed")["jobs"] == []


def test_a_job_that_fails_ends_with_exit_code_1_and_its_reason(vigil: Cli) -> None:
    done = vigil("jobs", "run", "--goal", "Be nice", "--wait", code=1)
    assert "failed: 0 of 0 steps: there is no plan" in done.stderr


def test_json_is_a_line_for_each_change(vigil: Cli) -> None:
    goal = steps(shell("echo \x1b[31mred"), ("levitate", {}))
    done = vigil("jobs", "run", "--goal", goal, "--wait", "--json")
    states = [json.loads(line) for line in done.stdout.splitlines()]
    assert states[-1]["status"] == "succeeded"
    assert states[-1]["steps_failed"] == 1
    assert done.stderr == ""
    # What a tool told can't steer a terminal.
    assert "\x1b" not in vigil("jobs", "show", states[-1]["id"]).stdout


def test_who_stops_watching_knows_the_id(vigil: Cli) -> None:
    """It's printed before the job has ended; Ctrl-C ends the watching alone."""
    process = vigil.start("jobs", "run", "--wait", "--goal", steps(shell("sleep 300")))
    id_ = process.stdout.readline().strip()
    eventually(lambda: vigil.json("jobs", "show", id_)["status"] == "running")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert vigil.json("jobs", "show", id_)["status"] == "running"
    vigil("jobs", "cancel", id_)


def test_a_job_is_cancelled_and_run_again(vigil: Cli) -> None:
    goal = steps(shell("test -e again || { touch again; sleep 300; }; echo done"))
    id_ = vigil.json("jobs", "run", "--goal", goal)["id"]
    eventually(lambda: bool(list((vigil.home / "workspaces").rglob("again"))))
    assert vigil("jobs", "again", id_, code=5).stderr.startswith("vigil: the job is run")
    vigil("jobs", "cancel", id_)
    eventually(lambda: vigil.json("jobs", "show", id_)["status"] == "cancelled")
    vigil("jobs", "cancel", id_, code=5)
    done = vigil("jobs", "again", id_, "--wait")
    assert "1/1 shell done: done" in done.stderr
    assert vigil.json("jobs", "show", id_)["runs"] == 2


def test_input_comes_from_stdin_and_a_key_runs_once(vigil: Cli) -> None:
    args = ("jobs", "run", "keep-notes", "--input", "-", "--key", "once")
    first = vigil(*args, stdin="eggs\n").stdout
    assert vigil(*args, stdin="eggs\n").stdout == first
    eventually(lambda: vigil.json("jobs", "show", first.strip())["status"] == "succeeded")
    assert vigil.json("jobs", "show", first.strip())["input"] == "eggs\n"


def test_skills_are_listed_and_a_broken_one_is_named(vigil: Cli) -> None:
    broken = vigil.home / "skills" / "broken.md"
    broken.write_text("---\ngaol: x\n---\n", "utf-8")
    done = vigil("jobs", "skills")
    assert "describe-machine" in done.stdout
    assert "broken.md, line 2: 'gaol' is not a known key" in done.stderr
    refused = vigil("jobs", "run", "broken", code=2)
    assert "broken.md, line 2" in refused.stderr
    broken.unlink()


def test_arguments_that_do_not_fit_are_refused_with_the_reason(vigil: Cli) -> None:
    """X-2: they were told as accepted, and the request stayed open."""
    goal, step = "Do as the input says", steps(shell("date > when.txt"))
    vigil("jobs", "run", "--goal", goal, "--input", step, "--wait")
    eventually(lambda: bool(vigil.json("approvals")["approvals"]))
    (asked,) = vigil.json("approvals")["approvals"]
    edit = ("approvals", "edit", asked["name"], "--input")
    why = "vigil: --input: the arguments don't fit the schema: command: 3 is not"
    # Whoever waits for a busy session in vain is told that it's stored; the same again is the same.
    eventually(lambda: why in vigil(*edit, '{"command": 3}', code=None).stderr)
    vigil(*edit, '{"command": 3}', code=2)
    assert vigil.json("approvals", "show", asked["name"])["state"] == "open"
    vigil(*edit, '{"command": "ls"}')
    eventually(lambda: vigil.json("approvals", "show", asked["id"])["state"] == "edited")


def test_wrong_usage_is_told(vigil: Cli) -> None:
    vigil("jobs", "run", code=2)
    vigil("jobs", "run", "keep-notes", "--goal", "x", code=2)
    vigil("jobs", "run", "none-such", code=2)
    vigil("jobs", "show", "0" * 32, code=3)
    vigil("jobs", "show", "x", code=2)
    vigil("jobs", "--limit", "0", code=2)


def test_a_terminal_shows_a_bar(vigil: Cli) -> None:
    """P-2: progress bars on long work."""
    ours, theirs = pty.openpty()
    goal = steps(shell("sleep 0.5"), ("search", {}))
    process = vigil.start_at(theirs, "jobs", "run", "--wait", "--goal", goal)
    os.close(theirs)
    shown = _all_of(ours, process)
    assert "running shell" in shown
    assert "0/2" in shown
    assert "succeeded: 2 of 2 steps, 1 failed" in shown
    assert process.wait() == 0


def _all_of(terminal: int, process: Started | subprocess.Popen[bytes]) -> str:
    """Return all that is written to a terminal until its process ends."""
    shown, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # nobody has it open any more
                break
        elif process.poll() is not None:
            break
    os.close(terminal)
    return shown.decode("utf-8", "replace")


def test_the_page_says_what_works(vigil: Cli, tmp_path: Path) -> None:
    """docs/jobs.md: the rehearsal model's example."""
    goal = 'shell {"command": "date > now.txt"}\nread_file {"path": "now.txt"}'
    page = (Path(__file__).resolve().parents[2] / "docs" / "jobs.md").read_text("utf-8")
    assert goal.split("\n", maxsplit=1)[0] in page
    vigil("jobs", "run", "--wait", "--goal", goal)
