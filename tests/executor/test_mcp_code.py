"""What a server's program sees of itself, wherever its interpreter is installed (issue 32)."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from services.executor.mcp.code import code_of, way_to
from services.executor.sandbox.commands import run
from tests.support.boxes import KINDS, UID, Boxes, boxes_of

SHELL = shutil.which("bash") or "/bin/sh"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A folder that those who run commands may enter."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    return tmp_path.resolve()


def installed(top: Path, *, bin_: str = "bin", program: str = "python3.99") -> Path:
    """Install what passes for a Python: a program, and its library that it reads."""
    prefix = top / "pythons" / "cpython-3.99.1"
    (prefix / bin_).mkdir(parents=True)
    shutil.copy(SHELL, prefix / bin_ / program)
    library = prefix / "lib" / "python3.99"
    library.mkdir(parents=True)
    (library / "os.py").write_text("the library\n")
    (prefix / "share").mkdir()
    (prefix / "share" / "keys").write_text("secret")
    return prefix


def environment(top: Path, python: Path) -> Path:
    """Make a virtual environment with a server in it, as pip lays it."""
    made = top / "venv"
    (made / "bin").mkdir(parents=True)
    (made / "pyvenv.cfg").write_text(f"home = {python.parent}\nversion = 3.99.1\n")
    (made / "bin" / "python").symlink_to(python)
    server = made / "bin" / "server"
    library = python.parent.parent / "lib" / "python3.99" / "os.py"
    server.write_text(f'#!{made}/bin/python\necho "$(<{library})"; echo "$(<{top}/beside)"\n')
    server.chmod(0o755)
    (top / "beside").write_text("not for it")
    return made


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_of_another_python_starts(top: Path, kind: str) -> None:
    """X-1: pyenv, uv and conda install Pythons in a person's folder, and uv names a version by a
    link; the environment's Python is a link to it, and the server a script that names that.
    """
    boxes = await boxes_of(kind, top)
    prefix = installed(top)
    (top / "pythons" / "cpython-3.99").symlink_to("cpython-3.99.1")
    made = environment(top, top / "pythons" / "cpython-3.99" / "bin" / "python3.99")
    told = await started(boxes, [str(made / "bin" / "server")], top)
    assert told.startswith("the library\n")
    assert "not for it" not in told
    code = code_of([str(made / "bin" / "server")], top / "home", "/usr/bin")
    assert set(code.shown) == {made, prefix / "bin" / "python3.99", prefix / "lib"}


async def started(boxes: Boxes, command: list[str], top: Path, path: str = "/usr/bin") -> str:
    code = code_of(command, top / "home", path)
    argv = boxes.sandbox.argv_of(
        command, workspace=boxes.workspace, readable=code.shown, links=code.links, uid=UID
    )
    env = {"PATH": path, "HOME": str(boxes.workspace)}
    ended = await run(argv, env, kind=boxes.sandbox.kind, timeout_s=20, output_bytes_max=4096)
    return ended.output


@pytest.mark.parametrize("kind", KINDS)
async def test_a_script_is_run_by_what_lies_beside_its_command(top: Path, kind: str) -> None:
    """X-1: nvm's `npx` is a link to a script that has `env` look for node: that of its version."""
    boxes = await boxes_of(kind, top)
    prefix = top / "node-v99"
    script = prefix / "lib" / "node_modules" / "npm" / "cli.js"
    script.parent.mkdir(parents=True)
    (prefix / "bin").mkdir()
    script.write_text("#!/usr/bin/env node\necho mine\n")
    script.chmod(0o755)
    shutil.copy(SHELL, prefix / "bin" / "node")
    (prefix / "bin" / "npx").symlink_to("../lib/node_modules/npm/cli.js")
    path = f"{prefix}/bin:/usr/bin:/bin"
    assert await started(boxes, [str(prefix / "bin" / "npx")], top, path) == "mine\n"


@pytest.mark.parametrize("kind", KINDS)
async def test_what_can_not_be_run_says_by_what_it_is_run(top: Path, kind: str) -> None:
    """X-6: "No such file", of a file that is there, sends one looking for the wrong one."""
    boxes = await boxes_of(kind, top)
    server = top / "server"
    server.write_text("#!/no/such/python -u\n")
    server.chmod(0o755)
    told = await started(boxes, [str(server)], top)
    assert told == (
        f"{server}: it is there, but what runs it can't be: /no/such/python -u: "
        "No such file or directory\n"
    )


def test_conda_editable_packages_and_a_persons_folders(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-1: of an interpreter its library, not what a person keeps beside it; of an environment the
    projects that it runs where they are written, unless that is a person's home, or Vigil's.
    """
    monkeypatch.setenv("HOME", str(top / "ann"))
    prefix = installed(top)
    made = environment(top, prefix / "bin" / "python3.99")
    project = top / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text('[project]\nname = "A.server"\n')
    (top / "pyproject.toml").write_text('[project]\nname = "b"\n')
    secrets = top / "secrets"
    secrets.mkdir()
    for name, folder, is_editable in (
        ("a_server", project, True), ("b", top, True), ("c", top / "pythons", False),
        ("d", secrets, True), ("e", project, True),
    ):  # fmt: skip
        about = made / "lib" / "python3.99" / "site-packages" / f"{name}-1.dist-info"
        about.mkdir(parents=True)
        origin = {"url": folder.as_uri(), "dir_info": {"editable": is_editable}}
        (about / "direct_url.json").write_text(json.dumps(origin))
    shown = set(code_of([str(made / "bin" / "python")], top / "home", "/usr/bin").shown)
    assert shown == {made, project, prefix / "bin" / "python3.99", prefix / "lib"}
    (prefix / "conda-meta").mkdir()
    (prefix / "ssl").mkdir()
    server = prefix / "bin" / "server"
    server.write_text(f"#!{prefix}/bin/python3.99\n")
    shown = set(code_of([str(server)], top / "home", "/usr/bin").shown)
    assert shown == {server, prefix / "lib", prefix / "ssl", prefix / "bin" / "python3.99"}


def test_links_are_followed_as_the_kernel_does(top: Path) -> None:
    (top / "a").symlink_to("b/../c")
    (top / "b").mkdir()
    (top / "c").symlink_to(top / "b")
    links, real = way_to(top / "a" / "x")
    assert real == top / "b" / "x"
    assert links == [(top / "a", "b/../c"), (top / "c", str(top / "b"))]
    (top / "loop").symlink_to("loop")
    assert way_to(top / "loop")[1] == top / "loop"
    assert way_to(Path(sys.executable))[1] == Path(sys.executable).resolve()


def test_what_code_names_by_itself_is_shown_only_if_it_is_a_program(top: Path) -> None:
    """S12: the first line of a script is written by whoever wrote the package."""
    (top / "key").write_text("secret")
    project = top / "project"
    project.mkdir()
    for file in (project / "package.json", project / "run"):
        file.write_text("mine")
    (project / "run").chmod(0o755)
    for by, shown in (("key", set()), ("project/run", {project / "run"})):
        server = top / "server"
        server.write_text(f"#!{top}/{by}\n")
        code = code_of([str(server)], top / "home", "/usr/bin")
        assert set(code.shown) == {server, *shown}
