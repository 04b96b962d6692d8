"""The name that pip knows Vigil by, and what its wheel can and can't do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

import httpx2
import pytest

from vigil import distribution
from vigil.contracts import golden

ROOT = Path(__file__).parents[2]
OTHERS = re.compile(r"\bpip install (-\S+ )*['\"]?vigil(?!-agents)|\bvigil\[")
"""Whoever types that gets a package of somebody else, and runs its build."""


def texts() -> Iterator[Path]:
    for folder in ("bench", "deploy", "docs", "examples", "prompts", "services", "shared", "tests"):
        yield from (ROOT / folder).rglob("*")
    yield from ROOT.glob("*")
    yield from (ROOT / ".github").rglob("*")


def test_no_text_sends_anybody_to_a_package_of_that_name() -> None:
    suffixes = {"", ".md", ".py", ".toml", ".yml", ".yaml", ".sh", ".txt", ".in", ".lock", ".json"}
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in texts()
        if path.is_file() and path.suffix in suffixes and path != Path(__file__)
        for line in path.read_text("utf-8", "replace").splitlines()
        if OTHERS.search(line)
    ]
    assert found == []


def test_one_name_in_the_project_and_in_the_messages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == distribution.NAME
    told = re.compile(r"command_for\([\"'](\w+)[\"']\)|vigil-agents\[(\w+)\]")
    named = {
        extra
        for folder in ("shared", "services", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md"}
        for found in told.finditer(path.read_text())
        for extra in filter(None, found.groups())
    }
    assert {"qdrant", "otel", "onnx"} <= named <= project["optional-dependencies"].keys()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=ROOT, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine that has the wheel and the libraries, and no checkout."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder, with_pip=False)
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install",
         "--no-deps", "--no-index", "--no-compile", "--quiet", "--disable-pip-version-check",
         wheel],
        capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    (package,) = folder.glob("lib/*/site-packages/vigil")
    compile_as_here(package)
    return folder


def compile_as_here(package: Path) -> None:
    """Give what was installed the bytecode of the same files here: 3 s of CPU to make anew."""
    programs = package / "programs"
    for file in package.rglob("*.py"):
        inside = file.is_relative_to(programs)
        here = (
            ROOT / file.relative_to(programs)
            if inside
            else ROOT / "shared" / file.relative_to(package.parent)
        )
        made = Path(cache_from_source(str(here)))
        if made.is_file() and here.read_bytes() == file.read_bytes():
            os.utime(file, ns=(here.stat().st_atime_ns, here.stat().st_mtime_ns))
            cached = Path(cache_from_source(str(file)))
            cached.parent.mkdir(exist_ok=True)
            shutil.copyfile(made, cached)


def run(elsewhere: Path, home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    # On PYTHONPATH, `.pth` files aren't read: the libraries are there, the checkout isn't. The
    # broker's program is found on PATH.
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("VIGIL_", "NATS_"))}
    environ |= {
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "VIGIL_HOME": str(home),
        "VIGIL_PORT": "0",
    }
    environ["PATH"] = f"{sysconfig.get_path('scripts')}:{environ['PATH']}"
    return subprocess.run(
        [elsewhere / "bin" / "vigil", *args],
        cwd=elsewhere, env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_wheel_is_named_after_the_distribution(wheel: Path) -> None:
    assert wheel.name.startswith("vigil_agents-")


def test_the_wheel_carries_the_golden_files(wheel: Path) -> None:
    """S-14: the same bytes as here."""
    with zipfile.ZipFile(wheel) as archive:
        prefix = "vigil/contracts/golden/"
        names = [name for name in archive.namelist() if name.startswith(prefix)]
        carried = {
            name.removeprefix(prefix).removesuffix(".json"): archive.read(name)
            for name in names
            if name.endswith(".json")
        }
    assert carried == golden.records()


def test_the_wheel_is_all_that_is_needed(elsewhere: Path, tmp_path: Path) -> None:
    """P-1: services, prompts, the console and memory's data are in it; it answers."""
    home = tmp_path / "home"
    # A project of somebody's, who starts it where they work: nothing of that is taken for ours.
    for name in ("services", "vigil"):
        (elsewhere / name / "gateway").mkdir(parents=True)
        (elsewhere / name / "gateway" / "__init__.py").write_text("raise SystemExit('not ours')")
        (elsewhere / name / "__init__.py").touch()
    try:
        started = run(elsewhere, home, "up", "--detach")
        assert started.returncode == 0, started.stderr
        page = re.search(r"http\S+/console/enter\S+", started.stdout)
        assert page
        assert "console.css" in httpx2.get(page[0], follow_redirects=True).text
        assert "rehearsal model" in run(elsewhere, home, "send", "hello").stdout
        headers = {"authorization": f"Bearer {(home / 'token').read_text().strip()}"}
        told = httpx2.get(page[0].partition("/console")[0] + "/api/status", headers=headers).text
        assert "wordllama-l2-256" in told
        assert (home / "skills" / "describe-machine.md").is_file()
    finally:
        assert run(elsewhere, home, "down").returncode == 0
        for name in ("services", "vigil"):
            shutil.rmtree(elsewhere / name)


def test_without_the_path_of_services_it_says_what_starts_them(
    elsewhere: Path, tmp_path: Path
) -> None:
    """P-1: no home, no broker; exit code 1, and what to do. As by `pip install --target`."""
    (path,) = elsewhere.rglob("vigil_agents.pth")
    path.rename(kept := path.with_suffix(".off"))
    try:
        done = run(elsewhere, tmp_path / "home", "up", "--detach")
        assert done.returncode == 1, done.stderr
        assert "the services aren't on this Python's path" in done.stderr
        assert "make up" in done.stderr
        assert "Traceback" not in done.stderr
        done = run(elsewhere, tmp_path / "home", "doctor")
        assert done.returncode == 1
        assert "pipx install vigil-agents" in done.stdout
        assert not (tmp_path / "home").exists()
    finally:
        kept.rename(path)


def test_the_rest_of_the_command_line_works_from_the_wheel(elsewhere: Path, tmp_path: Path) -> None:
    done = run(elsewhere, tmp_path / "home", "provision", "--credentials-only")
    assert done.returncode == 0, done.stderr


def test_each_python_that_is_claimed_has_a_job() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = "Programming Language :: Python :: 3."
    claimed = {one.rpartition(" ")[2] for one in project["classifiers"] if one.startswith(named)}
    jobs = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    (matrix,) = re.findall(r"^ +python: (\[.+\])$", jobs, re.M)
    assert set(json.loads(matrix)) == claimed
    assert min(claimed) == project["requires-python"].removeprefix(">=")
