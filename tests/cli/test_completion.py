"""Completion in the shells: commands, and what only a running Vigil knows."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import warm
from tests.support.cli import Cli, ColdCli, running_vigil
from vigil.cli import completion

PATIENCE_S = 5.0
"""Starting Python and loading the commands is most of it."""


@pytest.fixture(scope="module")
def vigil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A running Vigil with two sessions, a reminder, and the command `vigil` on the path."""
    folder = tmp_path_factory.mktemp("completion")
    with running_vigil(folder / "home") as cli:
        cli("send", "remind me in 3600 seconds to call Bob", "--thread", "t1")
        cli("send", "hello", "--thread", "u2")
        cli.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        yield cli


def bash(cli: Cli, *words: str) -> list[str]:
    """Source the script that `vigil` prints, and press TAB after `words`."""
    script = cli(code=None, _VIGIL_COMPLETE="source_bash").stdout
    quoted = " ".join(f"'{word}'" for word in words)
    tab = (
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); "
        '_vigil_completion vigil; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\n{tab}"],
        env=cli.environ, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


def asked_by_bash(cli: Cli, *words: str) -> list[str]:
    """Ask as that script does."""
    asked = {"_VIGIL_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words)}
    return cli(code=None, COMP_CWORD=str(len(words) - 1), **asked).stdout.split()


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


@needs_bash
def test_bash_completes_commands_options_and_what_runs(
    vigil: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-2"""
    assert bash(vigil, "vigil", "st") == ["status", "stop"]
    # As by a command that is there at once: the interpreter is in the first.
    programs = vigil.home.parent / "programs"
    programs.mkdir()
    forked = programs / "vigil"
    forked.write_text(f'#!/bin/sh\nexec {shlex.join(warm.relayed("vigil.cli"))} "$@"\n')
    forked.chmod(0o700)
    monkeypatch.setitem(vigil.environ, "PATH", f"{programs}{os.pathsep}{vigil.environ['PATH']}")
    assert bash(vigil, "vigil", "stop", "") == ["me:vigil:t1", "me:vigil:u2"]
    (timer,) = vigil.json("timers")["timers"]
    assert bash(vigil, "vigil", "timers", "me:vigil:t1", "--cancel", "") == [timer["timer_id"]]


def test_what_bash_is_offered(vigil: Cli) -> None:
    """P-2: as the test above, where only the words differ."""
    assert asked_by_bash(vigil, "vigil", "st") == ["status", "stop"]
    assert "--json" in asked_by_bash(vigil, "vigil", "status", "--js")
    assert asked_by_bash(vigil, "vigil", "serve", "s") == ["scheduler"]
    assert asked_by_bash(vigil, "vigil", "tail", "session", "m") == ["me:vigil:t1", "me:vigil:u2"]
    assert asked_by_bash(vigil, "vigil", "stop", "nobody") == []
    assert asked_by_bash(vigil, "vigil", "chat", "--agent", "v") == ["vigil"]
    assert asked_by_bash(vigil, "vigil", "config", "get", "person.t") == ["person.timezone"]


def test_what_has_an_id_or_a_name_is_offered_with_its_words(vigil: Cli) -> None:
    goal = vigil.json("goals", "add", "Learn Danish")["id"][:8]
    task = vigil.json("tasks", "add", "Tidy the notes", "--backlog")["id"][:8]
    vigil("cron", "add", "brief", "Brief me", "--cron", "30 8 * * *")
    row = vigil.json("cron", "add", "night check", "Look", "--cron", "0 3 * * *")["id"][:8]
    assert complete(vigil, "fish", "vigil goals show ") == f"{goal}\tLearn Danish"
    assert complete(vigil, "fish", f"vigil tasks show {task[:3]}") == f"{task}\tTidy the notes"
    offered = complete(vigil, "fish", "vigil cron show ").splitlines()
    assert {line.partition("\t")[0] for line in offered} == {"brief", row}
    vigil("config", "set", "models.big.provider", "openai")
    assert "big" in asked_by_bash(vigil, "vigil", "models", "remove", "b")
    vigil("config", "unset", "models.big.provider")


def complete(cli: Cli, shell: str, typed: str, **environ: str) -> str:
    """Ask as the scripts of zsh and fish do."""
    asked = {
        "_VIGIL_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": typed,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    return cli(code=None, **asked, **environ).stdout.strip()


def test_zsh_and_fish_get_what_their_scripts_expect(vigil: Cli) -> None:
    """P-2: names with descriptions; for zsh, a colon that is part of a name is marked."""
    script = vigil(code=None, _VIGIL_COMPLETE="source_zsh").stdout
    assert "compdef _vigil_completion vigil" in script
    assert "complete --command vigil" in vigil(code=None, _VIGIL_COMPLETE="source_fish").stdout
    zsh = complete(vigil, "zsh", "vigil st")
    assert '"status":"Show each service' in zsh
    assert '"stop":"' in zsh
    assert r'"me\\:vigil\\:t1"' in complete(vigil, "zsh", "vigil stop me:vigil:t")
    fish = complete(vigil, "fish", "vigil st").splitlines()
    assert [line.partition("\t")[0] for line in fish] == ["status", "stop"]
    offered = complete(vigil, "fish", "vigil stop me:vigil:t")
    assert offered == "me:vigil:t1\tremind me in 3600 seconds to call Bob"


def test_the_script_is_installed_for_the_shell_that_asks(tmp_path: Path) -> None:
    """P-2: `vigil --install-completion bash`, in a home of its own."""
    cli = ColdCli(  # the options depend on it from the first line
        tmp_path / "home", HOME=str(tmp_path), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
    )
    assert "_VIGIL_COMPLETE=complete_bash" in cli("--show-completion", "bash").stdout
    cli("--install-completion", "bash")
    assert "vigil" in (tmp_path / ".bashrc").read_text()
    (script,) = (tmp_path / ".bash_completions").iterdir()
    assert "_VIGIL_COMPLETE=complete_bash" in script.read_text()


@pytest.mark.parametrize(
    "environ",
    [
        {"VIGIL_URL": "http://127.0.0.1:1"},
        {"VIGIL_URL": "no url"},
        {"VIGIL_GATEWAY__PORT": "none"},
        {"VIGIL_TOKEN": "pat_wrong"},
    ],
)
def test_what_is_wrong_offers_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    """X-6: pressing TAB is no time for an error; nothing is printed but names."""
    cli = Cli(tmp_path / "home", **environ)
    for typed in ("vigil stop ", "vigil timers me:vigil:t1 --cancel ", "vigil chat --agent "):
        assert complete(cli, "fish", typed) == ""
    assert not cli.home.exists()


def test_who_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-6: a gateway that takes the connection and says nothing costs a third of a second."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("VIGIL_HOME", str(tmp_path))
        monkeypatch.setenv("VIGIL_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        begun = time.monotonic()
        assert completion.session_keys("") == []
        assert time.monotonic() - begun >= completion.PATIENCE_S
        cli = Cli(tmp_path / "home", VIGIL_URL=os.environ["VIGIL_URL"])
        begun = time.monotonic()
        assert complete(cli, "fish", "vigil stop ") == ""
        assert time.monotonic() - begun < PATIENCE_S
