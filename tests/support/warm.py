"""Programs of ours without the second that an interpreter takes to import them.

:func:`start` runs ``python -m MODULE ARGS`` as a process of its own, with its own pid, environment,
files and end. It is forked from a process that has imported our modules and done nothing else, so
that it begins where ``python -m`` gets to after 0.6 to 1.5 s of work. Tests of how a program starts
use the interpreter itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import gc
import importlib
import json
import os
import random
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from tests.support import certificates, ports
from vigil import crash
from vigil.processes.with_parent import die_with_parent
from vigil.registry import modules_of

ROOT: Final = Path(__file__).resolve().parents[2]
IMPORTED: Final = (
    "vigil.cli.app", "vigil.local.up", "vigil.observe.logs", "uvloop", "httpx2",
    "services.memory.vectors.shard",
    "vigil.calendars.ical.event_changes", "vigil.calendars.ical.objects",
    # What programs of the tests import.
    "pytest", "tests.support.memories",
    # What services import when they start.
    "services.memory.vectors.edge",
    "services.memory.embedding.wordllama", "vigil.channels.push.sender", "vigil.channels.post",
    "uvicorn.lifespan.off", "websockets.asyncio.client", "vigil.cli.chat.screen",
    "vigil.cli.chat.conversation", "rich.markdown", "encodings.utf_8_sig", "encodings.ascii",
    # What almost each command imports when it's run.
    "typer._adapters", "typer._click.decorators", "encodings.idna", "anyio._backends._asyncio",
    "vigil.backup.projections", "vigil.backup.reach", "vigil.erasure.blocks",
    "vigil.erasure.erase", "vigil.erasure.residue",
    *(f"services.{name}.__main__" for name in
      ("gateway", "cortex", "memory", "scheduler", "delivery", "executor")),
)  # fmt: skip
REGISTRIES: Final = (
    "services.cortex.profiles", "services.cortex.profiles.questions", "services.cortex.own_tools",
    "services.scheduler.timetable.kinds",
)  # fmt: skip
"""Folders of which a service imports every module."""
TRIAL: Final = "services.cortex.trial"
IS_OFFERED: Final = hasattr(os, "pidfd_open")
"""Linux; elsewhere programs are started the slow way."""
REQUEST_BYTES_MAX: Final = 256 * 1024
has_halved_times = False
"""Whether what is started has the times of :mod:`tests.support.takeover` halved."""
is_counted = False
"""Whether what outlives who started it ends as a child of the process that forks, for its CPU."""
shared_address = ""
"""Where to ask the process that forks, if another one began it; empty: this one begins its own."""
_COUNTED: Final = "counted"
_beginning = threading.Lock()


class Process:
    """A forked program, as `subprocess.Popen` shows one, and to be waited for in both ways."""

    def __init__(self, request: Mapping[str, Any], files: Sequence[int]) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(address())
        message = json.dumps(request).encode()
        assert len(message) < REQUEST_BYTES_MAX
        socket.send_fds(self._socket, [message], list(files))
        self.pid = int(self._socket.recv(64))
        self._code: int | None = None

    @property
    def returncode(self) -> int | None:
        """How it ended: its exit code, or the signal below zero; None: it runs."""
        if self._code is None:
            with contextlib.suppress(BlockingIOError):
                self._take(self._socket.recv(64, socket.MSG_DONTWAIT))
        return self._code

    def wait_within(self, seconds: float | None) -> int:
        """Wait until it ended; None: as long as it takes. Raises: TimeoutError."""
        if self._code is None:
            self._socket.settimeout(seconds)
            try:
                self._take(self._socket.recv(64))
            except TimeoutError:
                self._socket.settimeout(None)  # else a look without waiting waits as long again
                raise
        assert self._code is not None
        return self._code

    async def wait(self) -> int:
        """Wait until it ended."""
        loop = asyncio.get_running_loop()
        while (code := self.returncode) is None:
            readable = asyncio.Event()
            loop.add_reader(self._socket, readable.set)
            try:
                await readable.wait()
            finally:
                loop.remove_reader(self._socket)
        return code

    def _take(self, status: bytes) -> None:
        # Empty: the process that forks is gone, and all that it forked with it.
        self._code = os.waitstatus_to_exitcode(int(status)) if status else -signal.SIGKILL
        self._socket.close()

    def send_signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def start(
    module: str,
    args: Sequence[str] = (),
    *,
    env: Mapping[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
    cwd: Path | None = None,
) -> Process:
    """Run ``python -m module args`` with those open files; it ends with this process."""
    request = {
        "module": module, "args": list(args), "env": dict(env), "cwd": str(cwd or Path.cwd()),
        "has_halved_times": has_halved_times,
    }  # fmt: skip
    return Process(request, (stdin, stdout, stderr))


def run(
    module: str, args: Sequence[str], *, env: Mapping[str, str], stdin: str, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m module args`` to its end, as `subprocess.run` would."""
    if not IS_OFFERED:
        return subprocess.run(
            [sys.executable, "-m", module, *args],
            input=stdin, env=env, timeout=timeout_s, capture_output=True, text=True, check=False,
        )  # fmt: skip
    with contextlib.ExitStack() as stack:
        given, out, err = (stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        process = start(
            module, args, env=env,
            stdin=given.fileno(), stdout=out.fileno(), stderr=err.fileno(),
        )  # fmt: skip
        try:
            code = process.wait_within(timeout_s)
        except TimeoutError:
            process.kill()
            raise
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess([module, *args], code, out.read(), err.read())


async def converted(
    _python: str, _option: str, *program: str, data: bytes, within_s: float
) -> bytes | None:
    """Be `vigil.net.conversion.converted` for ``-m MODULE ARGS``, by a process that is forked."""
    module, *args = program
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
        given.write(data)
        given.seek(0)
        process = await asyncio.to_thread(
            start, module, args, env={},
            stdin=given.fileno(), stdout=out.fileno(), stderr=sys.__stderr__.fileno(),
        )  # fmt: skip
        try:
            async with asyncio.timeout(within_s):
                code = await process.wait()
        except TimeoutError:
            return None
        finally:
            process.kill()
        out.seek(0)
        return out.read() if code == 0 else None


def relayed(*command: str) -> list[str]:
    """Return a command line that runs ``python -m MODULE ARGS``, forked if that is offered."""
    if not IS_OFFERED:
        return [sys.executable, "-m", *command]
    relay = str(Path(__file__).with_name("relay.py"))
    return [sys.executable, "-IS", relay, address().removeprefix("\0"), *command]


def begin() -> None:
    """Start the process that forks, without waiting for it: it takes some seconds."""
    if IS_OFFERED:
        address()


def wait() -> None:
    """Wait until the process that forks, if it was begun, has imported all."""
    if _begun.cache_info().currsize:
        run("vigil.cli", ["--version"], env=os.environ, stdin="", timeout_s=60)


def address() -> str:
    """Return where the process that forks is to be asked; begin it, if nobody has."""
    with _beginning:
        return shared_address or _begun()


@functools.cache
def _begun() -> str:
    """Start the process that forks; return its socket, which is nowhere in the file system."""
    name = f"\0vigil-warm-{os.getpid()}-{random.SystemRandom().randrange(2**64):x}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(name)
    listener.listen(64)
    # One thread: what is forked has only the one that forks.
    environ = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "NO_COLOR": "1"}
    # It ends with this process, by the end of a pipe: a signal at the death of its parent would
    # come with the end of the thread that started it, and a test may be in one that ends.
    life, _ = os.pipe()
    files = [listener.fileno(), life]
    subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm", *map(str, files), *[_COUNTED] * is_counted],
        cwd=ROOT, env=environ, pass_fds=files, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    listener.close()
    os.close(life)
    return name


# ---------------------------------------------------------------- in the process that forks


def _serve(listener: socket.socket, life: int) -> NoReturn:
    """Fork for whoever asks; tell the pid, and how it ended."""
    events = selectors.DefaultSelector()
    events.register(life, selectors.EVENT_READ)
    events.register(listener, selectors.EVENT_READ)
    ended = _adopt() if _COUNTED in sys.argv else None
    if ended is not None:
        events.register(ended, selectors.EVENT_READ)
    while True:
        for key, _ in events.select():
            if key.fd not in events.get_map():  # ended in this same moment
                continue
            if key.fileobj == life:
                os._exit(0)
            elif key.fileobj is ended:
                ended.recv(4096)
                _bury({data[0] for _, _, _, data in events.get_map().values() if data})
            elif key.fileobj is listener:
                asking, _ = listener.accept()
                pid = _fork(asking, events, listener)
                if pid is None:
                    asking.close()
                    continue
                try:
                    asking.send(str(pid).encode())
                except OSError:  # whoever asked is gone, and will never end it
                    os.kill(pid, signal.SIGKILL)
                events.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, asking))
                events.register(asking, selectors.EVENT_READ, (pid, None))
            elif key.data[1] is None:  # whoever asked is gone
                events.unregister(key.fileobj)
                os.kill(key.data[0], signal.SIGKILL)
            else:
                events.unregister(key.fileobj)
                os.close(key.fd)
                pid, asking = key.data
                with contextlib.suppress(KeyError):
                    events.unregister(asking)
                _, status = os.waitpid(pid, 0)
                with contextlib.suppress(OSError):
                    asking.send(str(status).encode())
                asking.close()


def _adopt() -> socket.socket:
    """Become the parent of what outlives its own; return what tells that a child ended."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1)
    told, tell = socket.socketpair()
    tell.setblocking(False)
    signal.set_wakeup_fd(tell.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return told


def _bury(own: set[int]) -> None:
    """Wait for the children that ended and aren't its own, who are waited for elsewhere."""
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        if int(child) not in own:
            os.waitpid(int(child), os.WNOHANG)


def _fork(
    asking: socket.socket, events: selectors.BaseSelector, listener: socket.socket
) -> int | None:
    """Fork what is asked for -> its pid; None: whoever asked is gone."""
    try:
        message, files, _, _ = socket.recv_fds(asking, REQUEST_BYTES_MAX, 3)
    except OSError:
        return None
    if not message:
        return None
    request = json.loads(message)
    if "ANTHROPIC_API_KEY" in request["env"] or request["module"] == TRIAL:
        # Half a second, that only who has a real model needs.
        importlib.import_module("services.cortex.models.anthropic").import_sdk()
    if request["args"][:1] == ["mcp"]:
        importlib.import_module("vigil.memory.mcp_server")
    gc.freeze()  # as at first: who looks for garbage among what came since copies its pages
    pid = os.fork()
    if not pid:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        events.close()
        _share(listener.getsockname().decode())
        listener.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(3, 65536)
        die_with_parent()
        _run(request)
    for file in files:
        os.close(file)
    return pid


def _run(request: Mapping[str, Any]) -> NoReturn:
    """Be that program, from its first line to its exit code."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    random.seed()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests run under nohup
    _arm()
    ours = importlib.import_module("tests.support.warm")  # not this module, which is `__main__`
    if request.get("has_halved_times"):
        importlib.import_module("tests.support.takeover").scale(0.5)
        ours.has_halved_times = True
    for part in ("cli.admin.replay", "doctor.sandbox", "doctor.models"):
        importlib.import_module(f"vigil.{part}").subprocess = ours.Subprocess
    importlib.import_module("vigil.local.runners").start = ours._start_service
    sys.stdin = os.fdopen(0, "r", closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    sys.argv = [request["module"], *request["args"]]
    os._exit(
        _code_of(
            functools.partial(
                runpy.run_module, request["module"], run_name="__main__", alter_sys=True
            )
        )
    )


def _share(address: str) -> None:
    """Have what this program starts forked by the process that forked it."""
    ours = importlib.import_module("tests.support.warm")  # not this module, which is `__main__`
    ours.shared_address = address  # type: ignore[attr-defined]


def _arm() -> None:
    """Read the crash point, which a program reads at its start."""
    crash._name, crash._left = crash._parse(os.environ.get("VIGIL_CRASH_AT", ""))


def _code_of(main: Callable[[], object]) -> int:
    """Run to the end, as an interpreter does; return the exit code."""
    code: object = 0
    try:
        main()
    except SystemExit as exit_:
        code = exit_.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code if isinstance(code, int) else 0


async def _start_service(*command: str, env: Mapping[str, str], **_: Any) -> Process:
    """For `vigil up --processes`: its services are forked as well, and end with it."""
    _, _, module = command
    with Path(os.devnull).open() as nothing:
        return start(module, env=env, stdin=nothing.fileno(), stdout=1, stderr=2)


class Subprocess:
    """For doctor, models and replay: what they start is forked as well."""

    DEVNULL: Final = subprocess.DEVNULL
    SubprocessError: Final = subprocess.SubprocessError

    @staticmethod
    def run(
        command: Sequence[str], *, env: Mapping[str, str], timeout: float = 60.0, **more: Any
    ) -> subprocess.CompletedProcess[bytes]:
        stdin = more.get("input", b"").decode()
        done = run(command[2], command[3:], env=env, stdin=stdin, timeout_s=timeout)
        if more["check"]:
            done.check_returncode()
        out, err = done.stdout.encode(), done.stderr.encode()
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def _prepare() -> None:
    """Build what each program would build for itself, always the same."""
    importlib.import_module("services.gateway.app").described()
    cli = importlib.import_module("vigil.cli.app")
    cli.commands(cli.app)
    config = importlib.import_module("vigil.settings.config")
    config.load({}, home=Path(os.devnull))
    certificates.read()
    importlib.import_module("services.memory.recall.words").Words().asked("a word")
    importlib.import_module("services.executor.tools.declaration").declared()
    prompts = importlib.import_module("services.cortex.thought.prompts")
    for template in prompts.FOLDER.glob("*.j2"):
        prompts.template_of(prompts.FOLDER, template.name)


def _gather() -> None:
    """Have the kernel keep what was imported in large pages: a fork has less to copy.

    With pages of 4 KiB that is half of what a command costs. Where there are none, nothing changes.
    """
    huge, as_huge, now = 2 << 20, 14, 25  # MADV_HUGEPAGE, MADV_COLLAPSE
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, _, _, _, *name = line.split()
        if rights != "rw-p" or name not in ([], ["[heap]"]):
            continue
        begin, end = (int(bound, 16) for bound in span.split("-"))
        for part in range(-(-begin // huge) * huge, end - huge + 1, huge):
            madvise(part, huge, as_huge)
            madvise(part, huge, now)


def main() -> NoReturn:
    """Import what programs import, and wait for who wants one."""
    os.setpgid(0, 0)
    for name in IMPORTED:
        importlib.import_module(name)
    for package in REGISTRIES:
        modules_of(package)
    certificates.share()
    ports.share()
    importlib.import_module("tests.support.engines").share()
    _prepare()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "with threads, nothing can be forked"
    gc.freeze()
    _gather()
    _serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))


if __name__ == "__main__":
    main()
