"""What a broker stores once it is provisioned, to begin others with: its streams and consumers.

Recovering them takes a broker half of the CPU of making them, and the client none. What it keeps in
memory only is made each time.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from vigil import topology
from vigil.broker.process import Broker
from vigil.broker.provision import provision
from vigil.bus.buckets import create_bucket
from vigil.bus.bus import Bus
from vigil.outside.programs import ACCOUNT
from vigil.settings.sections import Nats, Retention

DATA: Final = Path("nats") / "data" / "jetstream" / ACCOUNT
"""Where a home has them."""


class Stored:
    """The files of one account."""

    def __init__(self, folder: Path) -> None:
        found = sorted(folder.rglob("*"))
        self._folders = [f"/{path.relative_to(folder)}" for path in found if path.is_dir()]
        self._files = {
            f"/{path.relative_to(folder)}": path.read_bytes() for path in found if path.is_file()
        }

    def copy(self, folder: Path) -> None:
        """Write them to `folder`, which isn't there yet."""
        folder.mkdir(parents=True)
        for path in self._folders:  # more than a hundred: `Path` would take as long as the system
            os.mkdir(f"{folder}{path}")  # noqa: PTH102
        for path, data in self._files.items():
            file = os.open(f"{folder}{path}", os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(file, data)
            os.close(file)


ONE_LOG: Final = Nats(partitions=1)
"""What a test looks into has one name; those about partitions, and all `vigil up`, have several."""
_kinds: Final[dict[str, Stored]] = {}


async def stored(retention: Retention, partitions: int = ONE_LOG.partitions) -> Stored:
    """Return what the topology asks for now: tests change the times of some."""
    asked = repr((topology.STREAMS, topology.BUCKETS, topology.CONSUMERS, retention, partitions))
    if asked not in _kinds:
        with tempfile.TemporaryDirectory() as home:
            await _provision(Path(home), retention, Nats(partitions=partitions))
            _kinds[asked] = Stored(Path(home) / DATA)
    return _kinds[asked]


async def _provision(home: Path, retention: Retention, nats: Nats) -> None:
    broker = Broker(nats, home=home, retention=retention)
    await broker.start()
    admin = await broker.admin()
    await provision(admin, retention, nats)
    await admin.close()
    await broker.stop()


async def complete(admin: Bus) -> None:
    """Make what a broker that begins with a copy lacks."""
    for bucket in topology.BUCKETS:
        if bucket.storage == "memory":
            await create_bucket(admin, bucket.name, replicas=1)
