"""`up`, `down`, `serve`: starting and ending."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from vigil import distribution
from vigil.errors import VigilError
from vigil.local import runfile
from vigil.local.forks import fork_services, may_fork
from vigil.local.runfile import APART, PROCESSES, AlreadyRunning, RunFile
from vigil.local.startup import in_words
from vigil.local.token import read_token
from vigil.sdk.client import Client
from vigil.settings import config
from vigil.settings.config import Settings
from vigil.settings.models import REHEARSAL

from .. import exits, options, output, tables
from ..tables import Result
from . import first_answers, first_model
from .forked import ForkedStart

if TYPE_CHECKING:
    from vigil.local.up import Supervisor

STOP_S: Final = 30.0
"""A clean stop takes at most this long."""
KILL_S: Final = 5.0
LINK_S: Final = 10.0
TELL_S: Final = 10.0
"""From then on it's told what a start is at, whenever that changes."""
LAST_LINES: Final = 12


def _number(processes: int) -> int:
    """Return it; raise BadParameter for a number that services aren't spread over."""
    if processes not in APART:
        raise typer.BadParameter(f"one of {', '.join(map(str, APART))}")
    return processes


def up(
    processes: Annotated[
        int,
        typer.Option(
            "--processes",
            metavar="1|2|6",
            callback=_number,
            help="In how many the services run: with 2 the cortex has its own, with 6 each has.",
        ),
    ] = PROCESSES,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when ready; go on in the background.")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="SERVICE",
            callback=options.check_services,
            help="Leave a service out, to run it elsewhere: `vigil serve`.",
        ),
    ] = None,
    is_child: Annotated[bool, typer.Option("--is-child", hidden=True)] = False,
    json: options.Json = False,
) -> None:
    """Start the broker and all services, and print the URL, a token and the model in use.

    Exit code 1, nothing made, where the services aren't on the path: see the README.
    """
    distribution.check_services()
    if not is_child:
        _bring_up(config.unread())
    settings = config.load()
    if not is_child:
        _prepare(settings, is_asked=sys.stdin.isatty() and not json)
        output.message("Starting …")
        settings = config.load()
    from vigil.broker.ports import kept_port

    port_before = kept_port(settings.home)

    def on_ready(run: RunFile) -> None:
        if not is_child:
            announce(settings, run, is_json=json)
            _report_moved(settings, run, port_before)

    if detach:
        on_ready(_detached(settings, processes, without or []))
        return

    _serve_all(settings, processes, without or [], on_ready)


def _bring_up(settings: Settings) -> None:
    """Take the steps that the home hasn't seen, before anything of it is read."""
    from vigil.upgrade import migrate

    if not settings.file.exists():
        return
    _refuse_second(settings)
    lock = runfile.Lock(settings.run_file)
    lock.acquire()
    try:
        done = migrate.bring_up(settings.home)
    finally:
        lock.release()
    if done is not None:
        output.message(migrate.in_words(done))


def _prepare(settings: Settings, *, is_asked: bool) -> None:
    """Make of the home what a start needs; at the first one a person who is there is asked."""
    from vigil.broker.cut import cut_blocks, newest_blocks
    from vigil.local.home import prepare_home

    _refuse_second(settings)
    is_first = read_token(settings.home) is None
    for remark in prepare_home(settings, partial(first_answers.first_person, is_asked=is_asked)):
        output.message(remark)
    if is_first and is_asked:
        first_model.ask_for_model(settings)
        first_answers.ask_for_cap(config.load())
    for cut in cut_blocks(newest_blocks(settings.broker_store)):
        output.message(f"{cut.in_words}: if that was no kill, `vigil restore` a backup.")


def _refuse_second(settings: Settings) -> None:
    run = runfile.running(settings.run_file)
    if run is not None:
        raise AlreadyRunning(runfile.refusal(run))


def _serve_all(settings: Settings, processes: int, without: list[str], on_ready: Any) -> None:
    gc.disable()  # as in `runtime.serve_alone`, until all is ready

    import uvloop

    from vigil.local.up import Supervisor
    from vigil.observe import logs

    logs.configure()
    forked = fork_services([name for name in APART[processes] if name not in without])
    supervisor = Supervisor(settings, processes, without, forked)

    def announce(run: RunFile) -> None:
        # Beside the loop: what is told is asked of the gateway, which runs in it.
        threading.Thread(target=on_ready, args=(run,), name="announce", daemon=True).start()

    uvloop.run(_until_signalled(supervisor, announce))


async def _until_signalled(supervisor: Supervisor, on_ready: Any) -> None:
    """Run until the first SIGTERM or SIGINT; more of them change nothing."""
    task = asyncio.ensure_future(supervisor.run(on_ready))
    is_stopping = False

    def stop() -> None:
        nonlocal is_stopping
        if not is_stopping:
            is_stopping = True
            # Whatever hangs: this process ends, and what it started ends with it.
            deadline = threading.Timer(STOP_S, os._exit, (exits.FAILURE,))
            deadline.daemon = True
            deadline.start()
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not is_stopping:
            raise


def _detached(settings: Settings, processes: int, without: list[str]) -> RunFile:
    """Start `vigil up` in a session of its own; return once it's ready."""
    log_file = settings.home / "logs" / "up.log"
    log_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if log_file.exists():
        log_file.replace(log_file.with_suffix(".log.1"))
    args = ["up", "--is-child", f"--processes={processes}"]
    args += [f"--without={name}" for name in without]
    # Nothing of ours is inherited: a caller that captures our output must not wait for it.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with os.fdopen(os.open(log_file, flags, 0o600), "ab") as log:
        if may_fork():
            child: subprocess.Popen[bytes] | ForkedStart = ForkedStart(partial(_again, args), log)
        else:
            child = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
                [sys.executable, "-Pm", "vigil.cli", *args],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                close_fds=True,
            )
    try:
        return _wait_ready(settings, child, log_file)
    except KeyboardInterrupt:
        child.terminate()
        raise


def _again(args: list[str]) -> None:
    from .. import main

    sys.argv[1:] = args
    main()


def _wait_ready(
    settings: Settings, child: subprocess.Popen[bytes] | ForkedStart, log_file: Path
) -> RunFile:
    """Wait for the child as long as it moves; it goes on, whatever becomes of the waiting."""
    begun = time.monotonic()
    shown: dict[str, str] = {}
    while child.poll() is None:
        run = runfile.read(settings.run_file)
        if run is not None and run.pid == child.pid:
            if run.is_ready:
                return run
            if run.is_stuck:
                raise exits.Timeout(_stuck(run))
            if run.starting and run.starting != shown and time.monotonic() > begun + TELL_S:
                shown = run.starting
                output.message(f"Still starting: {in_words(shown)}.")
        time.sleep(0.05)
    output.message(_with_last_words("vigil: it did not start", log_file))
    raise typer.Exit(code if (code := child.returncode or 0) > 0 else exits.FAILURE)


def _stuck(run: RunFile) -> str:
    return (
        f"not all is ready, and nothing moves: {in_words(run.starting)}. What is ready serves at "
        f"{run.url}; `{command()} status` shows it, `{command()} down` ends it"
    )


def _with_last_words(text: str, log_file: Path) -> str:
    lines = log_file.read_text("utf-8", "replace").splitlines()[-LAST_LINES:]
    return f"{text}; the end of {log_file}:\n" + "\n".join(f"  {line}" for line in lines)


def announce(settings: Settings, run: RunFile, *, is_json: bool) -> None:
    """Print what a person needs to go on."""
    token = read_token(settings.home)
    link = sign_in_link(run, token)
    if is_json:
        about = {"token": token, "home": str(settings.home), "console": link}
        output.json({**msgspec.structs.asdict(run), **about})
        return
    model = run.model or "unknown: the cortex is left out"
    if model == REHEARSAL:
        model = (
            "rehearsal: a stand-in that follows a few fixed rules, not an AI. For a real one:\n"
            f"          {first_model.hint(command())}"
        )
    output.data(
        f"Vigil is running (pid {run.pid}).\n"
        f"  Open    {link or run.url}\n"
        f"          good once, for two minutes; `{command()} console` makes another\n"
        f"  URL     {run.url}\n"
        f"  Token   {token}\n"
        f"  Model   {model}\n"
        f"  State   {settings.home}\n"
        f"Talk to it:  {command()} chat\n"
        f"Stop it:     {command()} down"
    )
    if run.model:
        for text in (first_model.remark_of(settings, run.model), _answer_of(settings, run.model)):
            if text:
                output.message(text)


def _answer_of(settings: Settings, model: str) -> str:
    said = first_model.answer_of(settings, model)
    return f"{model} {said}." if said else ""


def sign_in_link(run: RunFile, token: str | None) -> str | None:
    """Return a link that signs a browser in; None: no gateway runs here that would make one."""
    try:
        client = Client(run.url, token, timeout_s=LINK_S)
        made = client.console_link()
        return str(made.get("url") or client.url + made["path"])
    except VigilError:
        return None


def _report_moved(settings: Settings, run: RunFile, port_before: int | None) -> None:
    """Say it if programs on the bus don't find the broker where it was."""
    if port_before is None or settings.config.nats.url or run.nats_url.endswith(f":{port_before}"):
        return
    output.message(
        f"The broker listens at {run.nats_url} now, no longer on port {port_before}. Programs with "
        "a credential of `vigil token create --bus` need that address; the credential stays."
    )


def command() -> str:
    """Return how this command is called from where the person is."""
    here = Path(sys.argv[0]).absolute()
    found = shutil.which("vigil")
    if here.name != "vigil" or (found and Path(found).absolute() == here):
        return "vigil"
    try:
        return str(here.relative_to(Path.cwd()))
    except ValueError:
        return str(here)


def down() -> Result:
    """Stop what `vigil up` started here. Exit code 3 if nothing runs."""
    settings = config.unread()
    run = runfile.running(settings.run_file)
    if run is None:
        raise exits.NotReady(f"Vigil is not running (home {settings.home})")
    os.kill(run.pid, signal.SIGTERM)
    is_clean = runfile.wait_ended(settings.run_file, timeout_s=STOP_S + KILL_S)
    if not is_clean:
        output.message(f"It did not end in {STOP_S + KILL_S:g} s: killing it.")
        os.kill(run.pid, signal.SIGKILL)
        if not runfile.wait_ended(settings.run_file, timeout_s=KILL_S):
            raise exits.Timeout(f"pid {run.pid} does not end")
    return tables.done("Stopped.", {"pid": run.pid, "clean": is_clean})


def serve(service: Annotated[options.Service, typer.Argument(help="Which one.")]) -> None:
    """Run one service alone, beside the broker at NATS_URL. Any number of replicas may run."""
    from vigil import runtime
    from vigil.observe import logs

    logs.configure()
    runtime.serve_alone(service, config.load())
