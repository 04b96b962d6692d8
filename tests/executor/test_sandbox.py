"""The sandbox, with commands that mean no good: RELIABILITY S10, SPEC X-1."""

from __future__ import annotations

import asyncio
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import msgspec
import pytest
import uvloop

from services.executor.sandbox import bubblewrap as bwrap
from services.executor.sandbox.box import LAUNCH, CommandLimits, environment_of
from services.executor.sandbox.bubblewrap import bubblewrap
from services.executor.sandbox.choice import choose, sandbox_of, why_not
from services.executor.sandbox.commands import FLOOD_BYTES, CommandOutput, run
from services.executor.sandbox.launch import landlock as rules
from services.executor.sandbox.launch import seccomp
from tests.chaos.processes import launched
from tests.support.boxes import KINDS, UID, Boxes, appeared, boxes_of, gone, running
from vigil.processes.process import start
from vigil.settings.sections import Executor


@pytest.fixture(params=KINDS)
async def boxes(request: pytest.FixtureRequest, tmp_path: Path) -> Boxes:
    return await boxes_of(request.param, tmp_path)


def marker() -> str:
    """Return seconds to sleep that nothing else sleeps."""
    return f"9{secrets.randbelow(10**8)}.5"


# ---------------------------------------------------------------- what it is for


async def test_a_command_works_in_its_workspace(boxes: Boxes) -> None:
    """X-1: what it writes stays, its output and exit code come back."""
    first = await boxes.run("echo hello > note; mkdir -p a/b; pwd; echo oops >&2; exit 3")
    assert (first.ended, first.exit_code) == ("exit", 3)
    assert first.output == f"{boxes.workspace}\noops\n"
    second = await boxes.run("cat note; ls")
    assert second.output == "hello\na\nnote\n"


async def test_programs_of_the_system_run(boxes: Boxes) -> None:
    """X-1: Python, pipes, background processes, temporary files."""
    outcome = await boxes.run(
        "python3 -c 'print(sum(range(10)))'; seq 3 | sort -r | head -1; "
        "(echo late; touch made) & wait; ls made"
    )
    assert outcome.output == "45\n3\nlate\nmade\n"


async def test_it_ends_with_the_signal_of_its_command(boxes: Boxes) -> None:
    assert (await boxes.run("kill -SEGV $$ 2>/dev/null || exit 139")).exit_code == 128 + 11


async def test_a_program_that_is_not_there(boxes: Boxes) -> None:
    argv = boxes.sandbox.argv_of(["/no/such/program"], workspace=boxes.workspace, uid=UID)
    outcome = await run(
        argv, environment_of(workspace=boxes.workspace), kind=boxes.sandbox.kind,
        timeout_s=10, output_bytes_max=1000,
    )  # fmt: skip
    assert (outcome.exit_code, outcome.output) == (
        127,
        "/no/such/program: No such file or directory\n",
    )


async def test_signals_are_by_default_whatever_started_us(boxes: Boxes) -> None:
    """Python ignores SIGPIPE, and nohup SIGHUP: a shell can't take back what it found ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        outcome = await boxes.run(
            "trap 'echo hung up' HUP; kill -HUP $$; while :; do echo y; done | head -1"
        )
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (outcome.ended, outcome.output) == ("exit", "hung up\ny\n")


NOTHING_TO_IMPORT = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from launch import limits, start

class Unreadable:
    def find_spec(self, name, path=None, target=None):
        raise ModuleNotFoundError(f"{name} can't be read")

change_user = limits.change_user
def change(*args, **more):
    change_user(*args, **more)
    sys.meta_path.insert(0, Unreadable())
limits.change_user = change
start.main()
"""
"""Starts a command as who may read nothing of Python."""


def test_a_command_starts_as_who_may_not_read_python(tmp_path: Path) -> None:
    """A Python in a folder of its user's, and a uid of its own for each workspace."""
    plan = ("memory_bytes=1000000000", "processes=1000", "file_bytes=1000", "files_open=20")
    argv = [sys.executable, "-I", "-S", "-c", NOTHING_TO_IMPORT, str(LAUNCH.parent), *plan]
    place = (f"parent={os.getpid()}", f"workspace={tmp_path}", "--", "echo", "started")
    assert subprocess.check_output([*argv, *place], text=True, timeout=30) == "started\n"


async def test_granted_folders_may_be_written_under_their_own_paths(
    boxes: Boxes, tmp_path: Path
) -> None:
    granted = tmp_path / "granted"
    granted.mkdir()
    granted.chmod(0o777)
    told = await boxes.run(f"echo in > {granted}/file; cat {granted}/file", folders=(granted,))
    assert told.output == "in\n"
    assert (granted / "file").read_text() == "in\n"


# ---------------------------------------------------------------- what it must not see


async def test_files_outside_can_neither_be_read_nor_written(boxes: Boxes, tmp_path: Path) -> None:
    """S10: ~/.ssh, a neighbour's workspace, the accounts of this machine, the folder above."""
    for place in (tmp_path / ".ssh", boxes.workspace.parent / "bob"):
        place.mkdir()
        (place / "secret").write_text("canary")
        place.chmod(0o777)
        (place / "secret").chmod(0o666)
    told = await boxes.run(
        f"cat {tmp_path}/.ssh/secret; cat ../bob/secret; cat ../../../.ssh/secret; "
        f"cat ~root/.ssh/* /root/.bashrc /etc/shadow /etc/passwd; ls {tmp_path}; "
        f"echo gone > ../bob/secret; rm -rf ../bob {tmp_path}/.ssh; truncate -s 0 ../bob/secret; "
        f"chmod 000 {tmp_path}/.ssh; touch /usr/canary /etc/canary; ln ../bob/secret linked; true"
    )
    assert "canary\n" not in told.output
    assert "root:" not in told.output
    for place in (tmp_path / ".ssh", boxes.workspace.parent / "bob"):
        assert (place / "secret").read_text() == "canary"
        assert place.stat().st_mode & 0o777 == 0o777


async def test_a_symbolic_link_leads_nowhere(boxes: Boxes, tmp_path: Path) -> None:
    """S10: symlink escape, reading and writing."""
    secret = tmp_path / "secret"
    secret.write_text("canary")
    secret.chmod(0o666)
    told = await boxes.run(f"ln -s {secret} link; cat link; echo gone > link; cat link; true")
    assert "canary" not in told.output
    assert secret.read_text() == "canary"


async def test_the_host_process_is_out_of_sight(
    boxes: Boxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S10: neither its environment, nor its memory, nor a signal to it."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary-0123456789")
    pid = os.getpid()
    told = await boxes.run(
        f"env; cat /proc/self/environ /proc/*/environ /proc/{pid}/environ | tr '\\0' '\\n'; "
        f"cat /proc/{pid}/cmdline /proc/{pid}/maps; kill -CONT {pid} && echo signalled; "
        "kill -STOP -1 2>/dev/null; true",
        timeout_s=5,
    )
    assert "canary" not in told.output
    assert "signalled" not in told.output
    assert " ".join(sys.argv) not in told.output.replace("\0", " ").replace("?", " ")
    assert sys.executable not in told.output


async def test_variables_come_through_by_name_and_not_by_the_command_line(boxes: Boxes) -> None:
    """S15: any user of this machine may read command lines."""
    env = {"TOKEN": "sk-secret", "OTHER": "x"}
    argv = boxes.sandbox.argv_of(["/bin/true"], workspace=boxes.workspace, env=env)
    assert "sk-secret" not in " ".join(argv)
    told = await boxes.run("echo $TOKEN; env | cut -d= -f1 | sort | tr '\\n' ' '", env=env)
    first, names = told.output.splitlines()
    assert first == "sk-secret"
    assert set(names.split()) <= {
        "GIT_CONFIG_NOSYSTEM", "HOME", "LANG", "OTHER", "PATH", "PWD", "SHLVL", "TOKEN", "_",
    }  # fmt: skip


OPEN = """
import os
for number in range(3, 100):
    try: print(os.fstat(number))
    except OSError: pass
"""


def test_nothing_that_is_open_is_passed_on(tmp_path: Path) -> None:
    """S10: no descriptor of ours gets in, under the event loop that services run on."""

    async def main() -> str:
        boxes = await boxes_of("landlock", tmp_path)
        secret = tmp_path / "secret"
        secret.write_text("canary")
        with secret.open() as file, socket.socket() as listener:
            os.set_inheritable(file.fileno(), True)
            os.set_inheritable(listener.fileno(), True)
            listener.bind(("127.0.0.1", 0))
            told = await boxes.run(f"python3 -c '{OPEN}'; cat; echo end")
        return told.output

    assert uvloop.run(main()) == "end\n"


# ---------------------------------------------------------------- the network


PORTS = """
import socket, sys
for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)):
    try:
        with socket.socket(family, kind) as s:
            s.connect(("127.0.0.1", int(sys.argv[1])))
            s.send(b"hello")
        print("reached")
    except OSError as error:
        print(type(error).__name__)
try:
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(sys.argv[2])
    print("reached")
except OSError as error:
    print(type(error).__name__)
"""


async def test_no_port_of_this_machine_can_be_reached(boxes: Boxes, tmp_path: Path) -> None:
    """S10: the broker's, say; by TCP, UDP or a socket with a name."""
    (boxes.workspace / "ports.py").write_text(PORTS)
    (boxes.workspace / "ports.py").chmod(0o644)
    name = f"\0vigil-test-{secrets.token_hex(8)}"
    with (
        socket.socket() as tcp,
        socket.socket(type=socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        udp.setblocking(False)
        unix.bind(name)
        unix.listen()
        words = f"['', '{port}', chr(0) + '{name[1:]}']"
        script = f"python3 -c \"import sys; sys.argv = {words}; exec(open('ports.py').read())\""
        told = await boxes.run(script)
        shared = await boxes.run(script, network=True)
        assert udp.recv(10) == b"hello"  # of the one that was allowed to...
        with pytest.raises(BlockingIOError):
            udp.recv(10)  # ...and of no other
    assert len(told.output.split()) == 3
    # A packet of UDP may be sent into an empty network, where nobody is.
    assert told.output.split()[0] != "reached"
    assert told.output.split()[2] != "reached"
    assert shared.output.split() == ["reached", "reached", "PermissionError"]


async def test_no_way_around_by_another_kind_of_socket(boxes: Boxes) -> None:
    """S10: what namespaces don't cover, the filter does."""
    told = await boxes.run(
        "python3 -c '\nimport socket\nfor family in (16, 17, 38, 40):\n"
        "  try: socket.socket(family, 3).close(); print(family)\n  except OSError: pass\n'"
    )
    assert told.output.split() in ([], ["16"])


async def test_no_namespaces_of_its_own(boxes: Boxes) -> None:
    """S10: each would be more of the kernel to find a hole in."""
    told = await boxes.run("unshare -Ur true && echo made; unshare -n true && echo made; true")
    assert "made" not in told.output


@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns them")
async def test_root_in_a_box_cannot_turn_the_switches_of_the_kernel(boxes: Boxes) -> None:
    """S10: a program that runs as root owns them, and needs no right for that."""
    os.chown(boxes.workspace, 0, 0)
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    told = await boxes.run(
        "echo in > file; cat file; cat /proc/sys/kernel/core_pattern > kept || exit 0; "
        "cat kept > /proc/sys/kernel/core_pattern && echo turned; "
        "echo > /proc/sysrq-trigger && echo turned; "
        "touch /usr/canary && echo written; chown 5 file && echo owned; true",
        uid=None,
    )
    assert told.output.startswith("in\n")
    assert not {"turned", "written", "owned"} & set(told.output.split())
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before


# ---------------------------------------------------------------- what it must not use up


async def test_a_gigabyte_of_output_costs_neither_memory_nor_time(boxes: Boxes) -> None:
    """X-1: it is read, counted, and ended; the beginning and the end are kept."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.monotonic()
    outcome = await boxes.run("echo first; yes | head -c 1073741824; echo last", timeout_s=60)
    assert time.monotonic() - begun < 15
    assert outcome.ended == "flood"
    assert outcome.output.startswith("first\ny\n")
    assert FLOOD_BYTES < outcome.bytes_written < FLOOD_BYTES + 2**20
    assert len(outcome.output) < 17000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB


async def test_beginning_and_end_of_much_output_are_kept(boxes: Boxes) -> None:
    outcome = await boxes.run("echo first; seq 100000; echo last", output_bytes_max=1000)
    assert outcome.ended == "exit"
    assert outcome.output.startswith("first\n1\n2\n")
    assert outcome.output.endswith("99999\n100000\nlast\n")
    assert "bytes left out" in outcome.output


async def test_a_fork_bomb_is_held_and_ended(boxes: Boxes) -> None:
    """S10: it gets to its limit and not further; nothing of it is left."""
    mine = marker()
    bomb = f"bomb() {{ sleep {mine} & bomb | bomb & }}; bomb; sleep {mine}"
    task = asyncio.ensure_future(boxes.run(bomb, timeout_s=2.0, limits=CommandLimits(processes=40)))
    assert await appeared(mine)
    assert len(running(mine)) <= 40
    outcome = await task
    assert outcome.ended in ("timeout", "exit", "flood")
    assert await gone(mine)


async def test_a_loop_without_end_is_ended(boxes: Boxes) -> None:
    """S10: by the clock."""
    outcome = await boxes.run("while :; do :; done", timeout_s=0.2)
    assert (outcome.ended, outcome.exit_code) == ("timeout", None)


@pytest.mark.parametrize(
    "boxes", [pytest.param(KINDS[0], marks=pytest.mark.long), *KINDS[1:]], indirect=True
)
async def test_a_loop_that_nobody_looks_at_is_ended(boxes: Boxes) -> None:
    """S10: by its processor time, a limit that the launcher sets in both kinds of sandbox."""
    spent = await boxes.run("while :; do :; done", timeout_s=60, limits=CommandLimits(cpu_s=1))
    assert spent.exit_code in (128 + signal.SIGXCPU, 128 + signal.SIGKILL)


async def test_a_command_that_ignores_every_signal_is_ended(boxes: Boxes) -> None:
    """S10: a tool that never returns."""
    mine = marker()
    outcome = await boxes.run(f"trap '' TERM INT HUP; sleep {mine}; sleep {mine}", timeout_s=1.0)
    assert outcome.ended == "timeout"
    assert await gone(mine)


DAEMON = "setsid nohup bash -c 'exec >/dev/null 2>&1 </dev/null; sleep {0}' & "


async def test_what_makes_itself_a_daemon_does_not_survive(boxes: Boxes) -> None:
    """S10: not the end of its command, and not its being ended."""
    mine = marker()
    outcome = await boxes.run(f"({DAEMON.format(mine)}) ; sleep 0.3; echo done")
    assert outcome.output == "done\n"
    assert await gone(mine)
    ended = asyncio.ensure_future(boxes.run(f"({DAEMON.format(mine)}); sleep 60", timeout_s=1.0))
    assert await appeared(mine)
    assert (await ended).ended == "timeout"
    assert await gone(mine)


async def test_a_cancelled_call_leaves_nothing(boxes: Boxes) -> None:
    """S-12: who cancels it finds everything ended when the task is."""
    mine = marker()
    task = asyncio.ensure_future(boxes.run(f"({DAEMON.format(mine)}); sleep {mine}"))
    assert await appeared(mine)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(mine)


async def test_nothing_runs_on_when_the_executor_is_killed(boxes: Boxes) -> None:
    """X-5: SIGKILL gives it no time to end anything."""
    mine = marker()
    line = (boxes.sandbox.kind, str(boxes.workspace), f"({DAEMON.format(mine)}); sleep {mine}")
    host = await launched("tests.support.boxes", os.environ, args=line)
    try:
        assert await appeared(mine)
    finally:
        host.kill()
        await host.wait()
    assert await gone(mine)


async def test_a_file_has_a_limit(boxes: Boxes) -> None:
    """S10: a 10 GB write."""
    limits = CommandLimits(file_bytes=1024 * 1024)
    outcome = await boxes.run("head -c 10G /dev/zero > big; echo $?; ls -l big", limits=limits)
    assert "153" in outcome.output or "large" in outcome.output
    assert (boxes.workspace / "big").stat().st_size <= 1024 * 1024


async def test_memory_has_a_limit(boxes: Boxes) -> None:
    limits = CommandLimits(memory_bytes=128 * 1024 * 1024)
    outcome = await boxes.run("python3 -c 'x = bytearray(2**30); print(len(x))'", limits=limits)
    assert outcome.exit_code != 0
    assert "MemoryError" in outcome.output


def test_what_is_kept_of_output_is_bounded() -> None:
    heard = CommandOutput(10)
    for _ in range(100):
        heard.add(b"0123456789")
    assert heard.count == 1000
    assert heard.text() == "01234\n[... 990 bytes left out ...]\n56789"
    short = CommandOutput(10)
    short.add(b"abc")
    short.add("dé".encode())
    assert short.text() == "abcdé"


# ---------------------------------------------------------------- choosing


async def test_the_best_that_works_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bubblewrap, then Landlock, then none; each with the reason why it isn't the one before."""
    works = {kind: not await why_not(kind) for kind in ("bubblewrap", "landlock")}
    if not all(works.values()):
        pytest.skip(f"not both work here: {works}")
    assert (await choose(Executor())).kind == "bubblewrap"
    assert (await choose(Executor(sandbox="landlock"))).kind == "landlock"
    monkeypatch.setattr(bwrap.shutil, "which", lambda name: None)
    second = await choose(Executor())
    assert (second.kind, second.reasons) == (
        "landlock", ("bubblewrap: the program bwrap is not installed",),
    )  # fmt: skip
    asked = await choose(Executor(sandbox="bubblewrap"))
    assert (asked.kind, asked.is_offered, asked.sandbox()) == ("off", False, None)
    assert asked.problem == "no sandbox: bubblewrap: the program bwrap is not installed"


async def test_one_that_starts_but_holds_nothing_is_not_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S10: the probe looks whether it is shut in, not whether there is a program."""
    fake = tmp_path / "bwrap"
    fake.write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift\n'
        'while [ "$1" != /run/vigil ]; do shift; done; shift; shift; exec "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setattr(bwrap.shutil, "which", lambda name: str(fake))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "probe").touch()
    reason = await why_not("bubblewrap")
    assert reason.startswith("bubblewrap: ")


async def test_off_is_off_unless_a_person_says_unsafe() -> None:
    off = await choose(Executor(sandbox="off"))
    assert (off.kind, off.is_offered, off.sandbox()) == ("off", False, None)
    unsafe = await choose(Executor(sandbox="off", allow_unsafe=True))
    assert unsafe.is_offered
    assert unsafe.sandbox() is not None


async def test_without_a_sandbox_limits_and_the_end_hold_all_the_same(tmp_path: Path) -> None:
    """allow_unsafe: a daemon ends with its command even so."""
    mine = marker()
    boxes = Boxes(sandbox_of("off"), tmp_path)
    outcome = await boxes.run(f"({DAEMON.format(mine)}); ulimit -f; sleep 0.2", uid=None)
    assert outcome.output.strip() == str(256 * 1024)
    assert await gone(mine)


# ---------------------------------------------------------------- the filter, as a value


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("kind", ["namespace", "network", "landlock", "landlock-network"])
def test_every_jump_of_the_filter_stays_inside(machine: str, kind: str) -> None:
    """S10: what the kernel would refuse is seen here, for architectures that we aren't on, too."""
    program = seccomp.program_of(kind, machine, 3)
    assert len(program) < 4096
    for place, (code, then, otherwise, _) in enumerate(program):
        if code & 0x07 == 0x05:
            assert place + 1 + max(then, otherwise) < len(program)
            assert max(then, otherwise) < 256
    assert program[-1] == (seccomp.RETURN, 0, 0, seccomp.ALLOW)


def test_older_kernels_refuse_signals_that_newer_ones_hold_in() -> None:
    old = seccomp.program_of("landlock", "x86_64", rules.ABI_SIGNALS - 1)
    new = seccomp.program_of("landlock", "x86_64", rules.ABI_SIGNALS)
    assert len(old) - len(new) == 2 * 6 + 2 * 7


_OWNER = """
import fcntl, os, socket, struct, sys
from launch import kernel, landlock, seccomp
landlock.abi = lambda: landlock.ABI_SIGNALS - 1
victim, way = int(sys.argv[1]), sys.argv[2]
ready, other = socket.socketpair()
kernel.no_new_privileges()
seccomp.restrict("landlock-network")
fcntl.fcntl(ready, 10, 9)  # F_SETSIG, SIGKILL
try:
    if way == "fcntl":
        fcntl.fcntl(ready, fcntl.F_SETOWN, victim)
    elif way == "extended":
        fcntl.fcntl(ready, 15, struct.pack("ii", 1, victim))  # F_SETOWN_EX, F_OWNER_PID
    else:
        fcntl.ioctl(ready, int(way, 16), struct.pack("i", victim))
except PermissionError:
    print("refused")
fcntl.fcntl(ready, fcntl.F_SETFL, os.O_ASYNC)
other.send(b"now")
"""


@pytest.mark.skipif(not seccomp.is_known(), reason="no filter for this architecture")
@pytest.mark.parametrize("way", ["fcntl", "extended", "8901", "8902"])
async def test_older_kernels_signal_nobody_in_our_name_either(way: str) -> None:
    """S10: a file may name who is signalled when there is something to read, and with what."""
    victim = await start("sleep", "60")
    line = [sys.executable, "-S", "-c", _OWNER, str(victim.pid), way]
    env = {"PYTHONPATH": str(LAUNCH.parent)}
    process = await start(*line, stdout=PIPE, env=env)
    said, _ = await process.communicate()
    victim.terminate()
    assert (said, process.returncode) == (b"refused\n", 0)
    assert await victim.wait() == -signal.SIGTERM


async def test_as_a_user_other_than_root(tmp_path: Path) -> None:
    """X-1: the line that bubblewrap gets then makes a user namespace, too."""
    sandbox = bubblewrap("bwrap", is_root=False)
    line = sandbox.argv_of(["/bin/true"], workspace=tmp_path)
    assert "--unshare-user" in line
    assert "--cap-add" not in line
    assert "--unshare-net" in line
    assert "--unshare-net" not in sandbox.argv_of(["/bin/true"], workspace=tmp_path, network=True)


def test_the_command_line_for_doctor(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "services.executor.sandbox"], capture_output=True, timeout=60,
        check=True,
        env={**os.environ, "VIGIL_HOME": str(tmp_path), "VIGIL_EXECUTOR__SANDBOX": "off"},
    ).stdout  # fmt: skip
    assert msgspec.json.decode(told) == {
        "kind": "off", "reasons": ["executor.sandbox is off"], "is_offered": False,
    }  # fmt: skip
