"""How big an install is, and what a start costs: this tree beside an older commit, in turns.

Each is installed as its own `make up` would: its lock into a new environment, compiled as it does,
itself editable. What is counted as installed is what lies on the disk (blocks, as `du`), without
pip and setuptools, which every environment has; once as `make up` leaves it after a start, and once
with everything compiled, as pip does it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from bench.numbers import report, report_rounds

ROOT: Final = Path(__file__).parents[1]
COMMIT: Final = "cbf2f1e"
"""What is compared with, unless another is named: before the console's forms and channels."""
REST_S: Final = 5.0
OF_PYTHON: Final = re.compile(
    r"(pip|setuptools|pkg_resources|_distutils_hack|distutils-precedence)"
)


class Started(NamedTuple):
    """What a start took, and what runs at rest."""

    wall_s: float
    cpu_s: float
    """Of the command, the services and the broker, until all are ready."""
    pss_mb: float
    """What they have in memory 5 s later; what they share is counted once."""


class Build:
    """A tree, and an environment that it's installed in."""

    def __init__(self, tree: Path, place: Path) -> None:
        self.tree, self.place = tree, place
        self.bin = place / "bin"

    def install(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", self.place], check=True)
        python = self.bin / "python"
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        lazily = "requirements.lock,--no-compile" in (self.tree / "Makefile").read_text()
        lock = ["--no-deps", "--require-hashes", "-r", self.tree / "requirements.lock"]
        subprocess.run([*pip, *["--no-compile"] * lazily, *lock], check=True)
        if (weights := self.tree / "deploy" / "weights.py").exists():
            subprocess.run([python, weights], check=True)
        own = ["--no-deps", "--no-build-isolation", "--editable", self.tree]
        subprocess.run([*pip, *own], check=True)

    def packages(self) -> int:
        """Return how many there are, without this one and Python's own."""
        found = {path.name.partition("-")[0] for path in self._site().glob("*.dist-info")}
        builds = {"editables", "hatchling", "pathspec", "pluggy", "trove_classifiers"}
        return len(
            {name for name in found if not OF_PYTHON.match(name)} - builds - {"vigil_agents"}
        )

    def size_mb(self) -> float:
        paths = [
            path
            for top in (*self._site().iterdir(), *self.bin.iterdir())
            if not OF_PYTHON.match(top.name) and not top.is_symlink()
            for path in (top, *(top.rglob("*") if top.is_dir() else ()))
        ]
        return sum(path.lstat().st_blocks * 512 for path in paths) / 1e6

    def compile(self) -> None:
        command = [self.bin / "python", "-m", "compileall", "-q", self._site()]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)

    def start(self, home: Path) -> Started:
        """Start in a home, wait until it's ready, and end it."""
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("VIGIL_", "PYTHON"))}
        environ |= {"VIGIL_HOME": str(home), "VIGIL_PORT": "0"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.monotonic()
        subprocess.run(
            [self.bin / "vigil", "up", "--detach"],
            cwd=self.place,  # what lies beside whoever measures is on nobody's path
            env=environ,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        wall_s = time.monotonic() - begun
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        main = psutil.Process(json.loads((home / "run" / "up.json").read_text())["pid"])
        family = [main, *main.children(recursive=True)]
        try:
            cpu_s = sum(sum(one.cpu_times()[:2]) for one in family)
            cpu_s += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            time.sleep(REST_S)
            family = [main, *main.children(recursive=True)]
            pss_mb = sum(one.memory_full_info().pss for one in family) / 2**20
        finally:
            main.send_signal(signal.SIGTERM)
            psutil.wait_procs(family, timeout=60)
        return Started(wall_s, cpu_s, pss_mb)

    def _site(self) -> Path:
        return next((self.place / "lib").glob("python*/site-packages"))


@contextlib.contextmanager
def two_builds(home: Path, commit: str) -> Iterator[dict[str, Build]]:
    """Give the older commit's build and, as ``now``, this tree's; neither is installed yet."""
    tree = home / "tree"
    worktree = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*worktree, "add", "--quiet", "--detach", tree, commit], check=True)
    try:
        yield {commit: Build(tree, home / "before"), "now": Build(ROOT, home / "now")}
    finally:
        subprocess.run([*worktree, "remove", "--force", tree], check=True)


async def measure(home: Path, rounds: int, commit: str = COMMIT) -> None:
    """Install both, then start them in turns: in a new home, and again in the same one."""
    with two_builds(home, commit) as builds:
        await asyncio.to_thread(_compare, builds, home, rounds)


def _compare(builds: dict[str, Build], home: Path, rounds: int) -> None:
    starts: dict[tuple[str, str], list[Started]] = {}
    for name, build in builds.items():
        begun = time.monotonic()
        build.install()
        report("install_s", time.monotonic() - begun, "s", build=name)
        build.start(home / f"first-{name}")  # compiles what is imported
        packages = build.packages()
        report("installed_mb", build.size_mb(), "MB", build=name, packages=packages)
    for number in range(rounds):
        for name, build in builds.items():
            place = home / f"{name}-{number}"
            for which in ("first", "again"):
                starts.setdefault((name, which), []).append(build.start(place))
            shutil.rmtree(place)
    for (name, which), found in starts.items():
        about = {"build": name, "start": which}
        report_rounds("start_cpu_s", [one.cpu_s for one in found], "s", **about)
        report_rounds("start_wall_s", [one.wall_s for one in found], "s", **about)
        report_rounds("rest_pss_mb", [one.pss_mb for one in found], "MiB", **about)
    for name, build in builds.items():
        build.compile()
        report("compiled_mb", build.size_mb(), "MB", build=name, packages=build.packages())
