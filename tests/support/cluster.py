"""Three real nats-servers as a cluster on loopback, from the files that `provision` writes.

Only the ports differ from what a user gets, because all three share one machine. Nodes are killed
and started again one by one; :meth:`Cluster.whole` waits until every replica has caught up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from tests.support.ends import ended_with_parent
from tests.support.pauses import pauses
from vigil.broker import conf as nats_conf
from vigil.broker.ports import free_port
from vigil.broker.process import binary
from vigil.broker.provision import provision
from vigil.bus.bus import Bus, BusError
from vigil.errors import Unavailable
from vigil.settings import credentials
from vigil.settings.sections import Nats
from vigil.topology import ADMIN, BUCKETS, CONSUMERS, STREAMS

SIZE: Final = 3
START_S: Final = 30.0
WHOLE_S: Final = 60.0
STREAM_NAMES: Final = (*(s.name for s in STREAMS), *(f"KV_{b.name}" for b in BUCKETS))


class Server:
    """One node: its file, its process."""

    def __init__(self, name: str, folder: Path, conf: dict[str, Any]) -> None:
        self.name = name
        self.port = free_port()
        self._folder = folder
        store = conf["jetstream"] | {"store_dir": str(folder / name)}
        conf |= {"host": "127.0.0.1", "port": self.port, "jetstream": store}
        del conf["http"]
        conf["cluster"]["host"] = "127.0.0.1"
        self._conf = folder / f"{name}.conf"
        self._conf.write_text(json.dumps(conf))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / f"{self.name}.log").open("ab") as output:
            self._process = subprocess.Popen(
                **ended_with_parent([str(binary()), "-c", str(self._conf)]),
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """SIGSTOP: it falls behind."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def unpause(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


class Cluster:
    """The three of them."""

    def __init__(self, folder: Path, home: Path, partitions: int = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        users = nats_conf.Users(publics=credentials.ensure(home / "nkeys"))
        secret = credentials.cluster_secret(home / "nkeys")
        nodes = nats_conf.nodes_of([f"127.0.0.1:{free_port()}" for _ in range(SIZE)])
        texts = nats_conf.clustered(Nats(), users, store=folder, nodes=nodes, secret=secret)
        self.servers = {n: Server(n, folder, json.loads(text)) for n, text in texts.items()}
        self._partitions = partitions
        self._seed = credentials.load(home / "nkeys", ADMIN)

    @property
    def url(self) -> str:
        """What NATS_URL is set to."""
        return ",".join(f"nats://127.0.0.1:{s.port}" for s in self.servers.values())

    def url_of(self, name: str) -> str:
        return f"nats://127.0.0.1:{self.servers[name].port}"

    async def admin(self, url: str = "") -> Bus:
        return await Bus.connect(url or self.url, role=ADMIN, seed=self._seed, wait_s=START_S)

    async def start(self) -> None:
        """Start all, and make the streams with a replica on each."""
        for server in self.servers.values():
            server.start()
        bus = await self.admin()
        try:
            async with asyncio.timeout(START_S):
                await provision(bus, nats=Nats(replicas=SIZE, partitions=self._partitions))
            await self.whole(bus)
        finally:
            await bus.close()

    def stop(self) -> None:
        for server in self.servers.values():
            server.kill()

    async def leader(self, bus: Bus, stream: str) -> str:
        """Return the node that leads `stream`, waiting until there is one."""
        async with asyncio.timeout(START_S):
            pause_s = pauses()
            while True:
                with contextlib.suppress(Unavailable, BusError):
                    info = await bus.api(f"STREAM.INFO.{stream}", {}, timeout=1.0)
                    if name := info.get("cluster", {}).get("leader"):
                        return str(name)
                await asyncio.sleep(next(pause_s))

    async def whole(self, bus: Bus, within_s: float = WHOLE_S) -> None:
        """Wait until every replica of every stream and consumer is there and current.

        Raises:
            AssertionError: not within `within_s`; says what is missing.
        """
        begun = time.monotonic()
        lacking, pause_s = "nothing was asked", pauses()
        while lacking:
            assert time.monotonic() - begun < within_s, f"not whole: {lacking}"
            await asyncio.sleep(next(pause_s))
            try:
                lacking = await self._lacking(bus)
            except (Unavailable, BusError) as error:
                lacking = str(error)

    async def _lacking(self, bus: Bus) -> str:
        layout = await bus.layout()
        for stream in (one for name in STREAM_NAMES for one in layout.streams(name)):
            info = await bus.api(f"STREAM.INFO.{stream}", {}, timeout=2.0)
            if fault := _fault(info):
                return f"{stream}: {fault}"
        for consumer in (one for known in CONSUMERS for one in layout.each(known)):
            info = await bus.api(
                f"CONSUMER.INFO.{consumer.stream}.{consumer.name}", {}, timeout=2.0
            )
            if fault := _fault(info):
                return f"{consumer.name}: {fault}"
        return ""


def _fault(info: dict[str, Any]) -> str:
    replicas = info["cluster"].get("replicas") or []
    if not info["cluster"].get("leader"):
        return "no leader"
    if len(replicas) != SIZE - 1:
        return f"{len(replicas)} other replicas"
    late = [r["name"] for r in replicas if not r["current"] or r.get("offline")]
    return f"{late} not current" if late else ""


@contextlib.asynccontextmanager
async def running_cluster(folder: Path, home: Path, partitions: int = 1) -> AsyncIterator[Cluster]:
    """A provisioned cluster, ended with the test; it keeps its data in `folder`."""
    cluster = Cluster(folder, home, partitions)
    try:
        await cluster.start()
        yield cluster
    finally:
        cluster.stop()
