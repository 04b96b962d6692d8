"""Makes the fixture of a release: a home with a thing of every kind in it, as it leaves one.

    python -m tests.homes.make NAME    # with the tree of the release

writes tests/homes/NAME.tar.xz, once: later versions have to open what older ones left.
The keys and tokens in it are of nobody.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.support import every_kind
from tests.support.cli import running_vigil
from vigil.bus.bus import Bus
from vigil.settings import config, credentials
from vigil.topology import ADMIN

FOLDER = Path(__file__).parent
LEFT_OUT = re.compile(r"(logs|run|reserve|nats/nats\.(conf|log)|memory/\d+/vectors)(/|$)")
"""Of a home, in the fixture: what is made anew by each start; of vectors 100 MB, nearly empty."""


def main(name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "home"
        with running_vigil(home) as cli:
            cli("send", "--thread", "t1", "remember that my locker code is 4711")
            cli("send", "--thread", "t1", "remind me in 300 days to stretch")
            cli("tasks", "add", "Water the roses", "--backlog")
            cli("goals", "add", "Run ten kilometres")
            cli("cron", "add", "monday", "plan the week", "--cron", "0 9 * * 1")
            asyncio.run(_store(home, cli.run_state.nats_url))
        write(home, FOLDER / f"{name}.tar.xz")


async def _store(home: Path, url: str) -> None:
    """Store a record of each kind, of somebody else: nobody acts on what is theirs."""
    seed = credentials.load(config.load(home=home).credentials, ADMIN)
    bus = await Bus.connect(url, role=ADMIN, seed=seed)
    try:
        for one in every_kind.of_contracts("zoe", "Zoe"):
            await every_kind.store_one(bus, one, "0")
    finally:
        await bus.close()


def write(home: Path, file: Path) -> None:
    """Pack a home; who owns it and when doesn't matter."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if LEFT_OUT.match(info.name) or not (info.isfile() or info.isdir()):
            return None
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(file, "w:xz", preset=9) as archive:
        for path in sorted(home.iterdir()):
            archive.add(path, path.name, filter=plain)


if __name__ == "__main__":
    main(*sys.argv[1:])
