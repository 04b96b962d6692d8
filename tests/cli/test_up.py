"""`vigil up` and `vigil down`, as processes: what starts, what survives, what ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
from pathlib import Path

import httpx2
import pytest

from tests.support.cli import Cli, ColdCli, eventually, is_alive, running_vigil
from tests.support.examples import repeats
from vigil.local import runfile
from vigil.topology import SERVICES


def health(cli: Cli) -> dict[str, int]:
    """Return the pids that `vigil status` shows, by service; the broker has a line, too."""
    found = cli.json("status", code=None)["services"]
    return {s["service"]: s["pid"] for s in found if s["ready"] and s["service"] != "broker"}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def assert_signs_in(told: str) -> None:
    """The link that is told leads to who made it, and is still good."""
    (link,) = re.findall(r"http://\S+/console/enter\?code=\S+", told)
    page = httpx2.get(link)
    assert page.status_code == 200
    assert "Sign in as me" in page.text


def test_first_start_tells_everything_a_person_needs(tmp_path: Path) -> None:
    """P-1, P-3, S-11: URL, a ready-to-use token, the model in use; autonomy is announced."""
    cli = Cli(tmp_path / "home")
    try:
        done = ColdCli(cli.home)("up", "--detach")
        run = cli.run_state
        token = (cli.home / "token").read_text().strip()
        assert run.url in done.stdout
        assert token in done.stdout
        assert_signs_in(done.stdout)
        assert "rehearsal" in done.stdout
        assert "vigil models key anthropic" in done.stdout
        assert str(cli.home) in done.stdout
        assert "chat" in done.stdout
        assert "autonomy ON" in done.stderr
        assert "enabled = true" in (cli.home / "vigil.toml").read_text()
        assert mode_of(cli.home / "token") == 0o600
        assert mode_of(cli.home) == 0o700
        assert mode_of(cli.home / "logs" / "up.log") == 0o600
        assert token not in (cli.home / "logs" / "up.log").read_text()
        assert health(cli).keys() == set(SERVICES)
        cli("down")
        eventually(lambda: not is_alive(run.pid))
        assert runfile.read(cli.run_file) is None
        assert cli("down", code=3).stderr.startswith("vigil: Vigil is not running")

        again = cli("up", "--detach")
        assert token in again.stdout, "the token is kept"
        assert "autonomy" not in again.stderr
    finally:
        cli.end()


def test_up_json_is_one_object_and_a_second_up_is_refused(tmp_path: Path) -> None:
    """P-2: --json; one home, one `vigil up`, else exit code 5."""
    cli = Cli(tmp_path / "home")
    try:
        found = cli.json("up", "--detach")
        assert found["url"].startswith("http://127.0.0.1:")
        assert found["token"].startswith("pat_")
        assert found["model"] == "rehearsal"
        assert found["services"].keys() == set(SERVICES)
        for args in (("up",), ("up", "--detach"), ("up", "--processes=6")):
            done = cli(*args, code=5)
            assert "already runs" in done.stderr
            assert done.stdout == ""
        assert health(cli)
    finally:
        cli.end()


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (Cli, signal.SIGTERM),
        (Cli, signal.SIGINT),
        pytest.param(ColdCli, signal.SIGINT, marks=pytest.mark.long),
    ],
)
def test_in_the_foreground_a_signal_ends_it_cleanly(
    tmp_path: Path, kind: type[Cli], number: int
) -> None:
    """P-2: SIGTERM and SIGINT are a clean stop, and nothing stays behind."""
    cli = kind(tmp_path / "home")
    process = cli.start("up", "--json")
    try:
        assert process.stdout is not None
        found = json.loads(process.stdout.readline())
        assert_signs_in(found["console"])
        broker = broker_pid(cli)
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.pid == found["pid"]
        eventually(lambda: not is_alive(broker))
        assert runfile.running(cli.run_file) is None
    finally:
        process.kill()
        process.communicate()


def test_a_typo_in_the_file_takes_nothing_away_from_what_runs(tmp_path: Path) -> None:
    """Only what starts reads the file, and says what was meant; all else goes on, and ends it."""
    with running_vigil(tmp_path / "home") as cli:
        file = cli.home / "vigil.toml"
        good = file.read_text()
        file.write_text(good + "\n[budgt]\ndaily_usd = 5\n\n[gateway]\nprot = 80\n")
        cli("status")
        assert "hello" in cli("send", "hello").stdout
        assert cli("sessions").stdout
        told = {one["name"]: one for one in cli.json("doctor", code=1)["checks"]}["config"]
        for hint in ("did you mean budget?", "did you mean port?"):
            assert hint in told["found"]
        assert "did you mean budget?" in cli("provision", code=1).stderr
        file.write_text("[[[")
        cli("status")
        cli("down")
        assert "vigil.toml" in cli("up", "--detach", code=1).stderr


def broker_pid(cli: Cli) -> int:
    """Find the nats-server of this home."""
    conf = str(cli.home / "nats" / "nats.conf")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if conf.encode() in arguments:
            return int(folder.name)
    raise AssertionError("no nats-server")


KILLED = SERVICES[: repeats(len(SERVICES), fast=2)]


@pytest.mark.repeated
def test_a_killed_service_comes_back_where_it_was(tmp_path: Path) -> None:
    """X-5: --processes 6: SIGKILL each service; it is restarted, the URL stays."""
    with running_vigil(tmp_path / "home", "--processes=6") as cli:
        url = cli.run_state.url
        for name in KILLED:
            pid = cli.run_state.services[name]
            os.kill(pid, signal.SIGKILL)
            eventually(lambda name=name, pid=pid: cli.run_state.services[name] != pid)
            eventually(lambda name=name: health(cli).get(name) == cli.run_state.services[name])
        assert cli.run_state.url == url
        assert "hello" in cli("send", "hello").stdout


def test_one_service_runs_elsewhere_as_under_a_debugger(tmp_path: Path) -> None:
    """What CONTRIBUTING.md describes: five services with `up`, the sixth by itself."""
    with running_vigil(tmp_path / "home", "--without", "cortex") as cli:
        assert set(cli.run_state.services) == set(SERVICES) - {"cortex"}
        cortex = cli.start("serve", "cortex", NATS_URL=cli.run_state.nats_url)
        try:
            assert "hello" in cli("send", "hello").stdout
            assert health(cli)["cortex"] == cortex.pid
        finally:
            cortex.terminate()
            cortex.communicate(timeout=30)


def test_a_killed_broker_comes_back(tmp_path: Path) -> None:
    """X-5: the broker is watched; what was said before is still there."""
    with running_vigil(tmp_path / "home") as cli:
        cli("send", "before", "--thread", "t1")
        before = broker_pid(cli)
        os.kill(before, signal.SIGKILL)
        eventually(lambda: not is_alive(before))
        eventually(lambda: len(health(cli)) == len(SERVICES))
        assert broker_pid(cli) != before
        assert "after" in cli("send", "after", "--thread", "t1").stdout
        texts = [r["data"]["payload"]["text"] for r in said_by_person(cli, "me:vigil:t1")]
        assert texts == ["before", "after"]


def said_by_person(cli: Cli, key: str) -> list[dict]:
    lines = cli("tail", "session", key, "--no-follow", "--json").stdout.splitlines()
    return [r for r in map(json.loads, lines) if r["kind"] == "in.said.user"]


def test_when_the_supervisor_is_killed_nothing_is_left(tmp_path: Path) -> None:
    """P-2: children and the broker end with their parent, and a new start works."""
    with running_vigil(tmp_path / "home", "--processes=6") as cli:
        run = cli.run_state
        pids = [*run.services.values(), broker_pid(cli)]
        os.kill(run.pid, signal.SIGKILL)
        eventually(lambda: not any(map(is_alive, pids)))
        assert cli.json("status", code=3) == {"running": False, "url": run.url, "services": []}
        cli("up", "--detach")
        assert len(health(cli)) == len(SERVICES)


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    """P-3: the message names the address and the way out; nothing keeps running."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        cli = Cli(tmp_path / "home", VIGIL_PORT=port)
        for args in (("up",), ("up", "--detach")):
            done = cli(*args, code=1)
            assert f"can't listen on 127.0.0.1:{port}" in done.stderr
            assert "VIGIL_PORT" in done.stderr
        assert runfile.running(cli.run_file) is None


def test_every_mistake_in_the_configuration_is_told_at_once(tmp_path: Path) -> None:
    """P-3: and nothing is started or written."""
    cli = Cli(tmp_path / "home", VIGIL_MODEL__MAX_TOKENS="none", VIGIL_GATEWAY__NAME="x")
    done = cli("up", "--detach", code=1)
    assert "VIGIL_MODEL__MAX_TOKENS" in done.stderr
    assert "VIGIL_GATEWAY__NAME" in done.stderr
    assert not cli.home.exists()


def test_a_service_that_cannot_start_ends_the_start(tmp_path: Path) -> None:
    """P-1: a model without a key is refused, with the reason, in each way of running."""
    for arguments in ((), ("--processes=1",), ("--processes=6",)):
        cli = Cli(tmp_path / "-".join(("home", *arguments)), VIGIL_MODEL="claude-opus-5-5")
        done = cli("up", "--detach", *arguments, code=1)
        assert "ANTHROPIC_API_KEY" in done.stderr
        assert runfile.running(cli.run_file) is None


def test_a_start_tells_a_setting_without_meaning_and_makes_a_foreign_token_again(
    tmp_path: Path,
) -> None:
    """S-11: the seed's poll intervals are accepted, and said once to have no meaning. X-4: a token
    file from another installation would lock its owner out."""
    with running_vigil(tmp_path / "home", TIMER_POLL_INTERVAL_MS="100") as cli:
        cli.end()
        wrong = "pat_" + "x" * 43
        (cli.home / "token").write_text(wrong)
        done = cli("up", "--detach")
        assert done.stderr.count("TIMER_POLL_INTERVAL_MS") == 1
        assert (cli.home / "token").read_text().strip() != wrong
        assert mode_of(cli.home / "token") == 0o600
        assert cli.json("status")["running"] is True
