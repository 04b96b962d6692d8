"""`vigil provision` and `vigil serve`: what a deployment with its own broker does."""

from __future__ import annotations

import contextlib
import json
import shutil
import stat
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli, ColdCli, eventually
from vigil.broker.ports import free_port
from vigil.broker.process import binary
from vigil.topology import SERVICES


class External:
    """A nats-server started from the configuration that `provision` wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "out" / "nats" / "nats.conf"
        self.seeds = folder / "seeds"
        self.cli = Cli(folder / "operator")
        self.url = f"nats://127.0.0.1:{free_port()}"
        self._monitor = free_port()

    def write(self) -> dict[str, Any]:
        """Do what the one-shot `credentials` of docker-compose.yml does."""
        store = str(self.folder / "store")
        return dict(
            self.cli.json(
                "provision", "--credentials-only", "--write-nats-conf", str(self.conf),
                "--store", store, "--seeds-out", str(self.seeds),
            )
        )  # fmt: skip

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run it, on ports of our own: the written ones are those of a container."""
        conf = json.loads(self.conf.read_text())
        assert conf["port"] == 4222
        assert conf["http"] == "127.0.0.1:8222"
        conf |= {
            "host": "127.0.0.1",
            "port": int(self.url.rpartition(":")[2]),
            "http": f"127.0.0.1:{self._monitor}",
        }
        mine = self.folder / "mine.conf"
        mine.write_text(json.dumps(conf))
        log = (self.folder / "nats.log").open("wb")
        process = subprocess.Popen([str(binary()), "-c", str(mine)], stdout=log, stderr=log)
        try:
            eventually(self.is_healthy)
            yield
        finally:
            process.terminate()
            process.wait(10)
            log.close()

    def is_healthy(self) -> bool:
        """The healthcheck of docker-compose.yml."""
        url = f"http://127.0.0.1:{self._monitor}/healthz?js-enabled-only=true"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@pytest.fixture
def external(tmp_path: Path) -> External:
    return External(tmp_path)


def test_each_service_gets_its_own_seed_and_nobody_elses(external: External) -> None:
    """X-4: seeds are private, the broker's configuration has public keys only; repeatable."""
    first = external.write()
    seeds = {path.relative_to(external.seeds).as_posix() for path in external.seeds.rglob("*.seed")}
    assert seeds == {f"{name}/{name}.seed" for name in SERVICES}
    for path in external.seeds.rglob("*.seed"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_text().strip() not in external.conf.read_text()
    conf = external.conf.read_text()
    users = json.loads(conf)["accounts"]["VIGIL"]["users"]
    assert all(user["nkey"].startswith("U") for user in users)
    assert external.write() == first
    assert external.conf.read_text() == conf, "keys are made once"


def test_services_run_alone_beside_a_broker_of_ones_own(external: External) -> None:
    """P-2, X-4: the steps of docker-compose.yml, one home with one seed for each service."""
    external.write()
    with external.running(), contextlib.ExitStack() as stack:
        made = external.cli("provision", "--token-user", "me", NATS_URL=external.url).stdout
        again = external.cli("provision", "--token-user", "me", NATS_URL=external.url).stdout
        assert made == again, "the token is made once"
        token = made.split("token")[1].split()[0]
        port = free_port()
        for name in SERVICES:
            stack.enter_context(serving(external, name, port))
        url = f"http://127.0.0.1:{port}"
        person = Cli(external.folder / "person", VIGIL_URL=url, VIGIL_TOKEN=token)
        eventually(lambda: person("status", code=None).returncode == 0)
        assert "hello" in person("send", "hello").stdout
        pids = {s["pid"] for s in person.json("status")["services"]}
        assert len(pids) == len(SERVICES)


@contextlib.contextmanager
def serving(external: External, name: str, port: int) -> Iterator[None]:
    home = external.folder / f"home-{name}"
    (home / "nkeys").mkdir(parents=True)
    seed = (external.seeds / name / f"{name}.seed").read_bytes()
    (home / "nkeys" / f"{name}.seed").write_bytes(seed)
    kind = ColdCli if name == "cortex" else Cli
    process = kind(home, NATS_URL=external.url, VIGIL_PORT=str(port)).start("serve", name)
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(30) == 0, process.communicate()
        process.communicate()


def test_up_uses_a_broker_that_is_there(external: External) -> None:
    """P-3: $NATS_URL wins over the embedded server, and nothing of it is started."""
    external.write()
    with external.running():
        cli = Cli(external.cli.home, NATS_URL=external.url)
        try:
            found = cli.json("up", "--detach")
            assert found["nats_url"] == external.url
            assert not (cli.home / "nats").exists()
            assert "hello" in cli("send", "hello").stdout
            checks = {c["name"]: c for c in cli.json("doctor")["checks"]}
            assert f"{external.url}, nats-server 2." in checks["broker"]["found"]
            cli("down")
        finally:
            cli.end()


def test_a_broker_that_does_not_know_us_is_told_clearly(external: External) -> None:
    """X-4: another installation's broker, and no broker at all; exit code 3 and the way out."""
    external.write()
    with external.running():
        stranger = Cli(external.folder / "stranger", NATS_URL=external.url)
        done = stranger("up", "--detach", code=3)
        assert "it knows no such credential, the admin's of this home" in done.stderr
        assert "--write-nats-conf" in done.stderr
        assert stranger.json("doctor", code=1)["ok"] is False


def test_provision_needs_a_broker_or_says_so(tmp_path: Path) -> None:
    """X-6."""
    cli = Cli(tmp_path / "home")
    assert "NATS_URL" in cli("provision", code=1).stderr
    assert (
        "--credentials-only"
        in cli("provision", "--credentials-only", "--token-user", "me", code=2).stderr
    )
    assert "NATS_URL" in cli("serve", "cortex", code=1).stderr
    assert "cortex" in cli("serve", "painter", code=2).stderr
    assert list(tmp_path.iterdir()) == []


def of_doctor(cli: Cli) -> dict[str, dict[str, str]]:
    return {one["name"]: one for one in cli.json("doctor")["checks"]}


def test_the_doctor_of_one_service_looks_with_its_seed(external: External) -> None:
    """P-2: a machine of one service has no other credential, and needs no port or token."""
    external.write()

    def apart(name: str) -> Cli:
        home = external.folder / f"home-{name}"
        (home / "nkeys").mkdir(parents=True, mode=0o700)
        shutil.copy(external.seeds / name / f"{name}.seed", home / "nkeys")
        own = {"NATS_URL": external.url, "VIGIL_PORT": str(free_port())}
        return Cli(home, **own, VIGIL_EXECUTOR__SANDBOX="off")

    with external.running():
        external.cli("provision", NATS_URL=external.url)
        found = of_doctor(apart("cortex"))
        assert found["broker"]["found"].endswith("for cortex")
        assert found.keys().isdisjoint({"port", "token"})
        gateway = apart("gateway")
        assert of_doctor(gateway)["port"]["found"].endswith(" is free")
        process = gateway.start("serve", "gateway")
        try:
            eventually(lambda: of_doctor(gateway)["port"]["found"].endswith(" answers"))
        finally:
            process.terminate()
            process.communicate()
