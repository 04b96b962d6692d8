"""The Python examples run, as a person runs them, against a Vigil that runs (SPEC P-7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nkeys
import pytest

from tests.support.cli import Cli, running_vigil
from vigil import ApiError, BusClient, Client
from vigil.errors import InvalidInput, Unavailable
from vigil.sdk import bus_client

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    home = tmp_path_factory.mktemp("examples") / "home"
    with running_vigil(home, VIGIL_AUTONOMY__COOLDOWN_MS="0") as running:
        yield running


def run(cli: Cli, name: str, *args: str, **environ: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *args],
        env=cli.environ | environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_the_http_example(cli: Cli) -> None:
    """P-7: publish, follow, query."""
    token = (cli.home / "token").read_text().strip()
    shown = run(cli, "client.py", VIGIL_URL=cli.run_state.url, VIGIL_TOKEN=token)
    assert shown[0].startswith("vigil: ")
    assert " is stored at " in shown[1]
    assert "turn.committed" in {line.partition(":")[0] for line in shown}
    assert any("An untrusted event of the kind build.failed" in line for line in shown)
    assert shown[-1].endswith(".")


def test_the_bus_example(cli: Cli, tmp_path: Path) -> None:
    """P-7: with a credential that reaches one subject and its own signals."""
    made = cli.json("token", "create", "--user", "me", "--bus")
    credential = tmp_path / "credential.json"
    credential.write_text(json.dumps(made))
    shown = run(cli, "bus_client.py", str(credential), "me:vigil:bus")
    assert shown[0].startswith("event ")
    assert shown[-1].startswith("message.")


def test_an_event_that_is_published_again_counts_once(cli: Cli) -> None:
    """P-5: by its source and id, on either way in; who repeats is told the same."""
    client = Client(cli.run_state.url, (cli.home / "token").read_text().strip())
    told = [
        client.publish_event("me:vigil:twice", "rain", "soon", source="sky", event_id="1")
        for _ in range(2)
    ]
    assert told[0] == told[1]
    events = [r for r in client.timeline("me:vigil:twice")["records"] if r["kind"] == "in.external"]
    assert len(events) == 1
    assert events[0]["data"]["payload"]["content"] == "soon"
    with pytest.raises(ApiError) as caught:
        client.publish_event("me:vigil:twice", "", None, source="sky")
    assert caught.value.status == 422


async def test_a_bus_client_says_what_is_wrong(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-6: no credential, no seed, nobody there, not let in."""
    monkeypatch.setattr(bus_client, "TIMEOUT_S", 0.25)
    made = cli.json("token", "create", "--user", "me", "--bus", "--name", "other")
    for broken in (made | {"url": 1}, made | {"seed_file": str(tmp_path / "none")}):
        with pytest.raises(InvalidInput, match="credential"):
            await BusClient.connect(broken)
    strange = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    (tmp_path / "seed").write_bytes(strange)
    for refused in (
        made | {"seed_file": str(tmp_path / "seed")},
        made | {"seed_file": str(tmp_path / "seed"), "url": "nats://127.0.0.1:9"},
    ):
        with pytest.raises(Unavailable, match="takes this credential"):
            await BusClient.connect(refused)


def test_importing_the_package_is_light() -> None:
    """P-2: the clients are imported when they are used."""
    code = (
        "import sys, vigil; light = not ({'nats', 'msgspec', 'ssl'} & set(sys.modules));"
        "from vigil import BusClient, Client; print(light, Client.__name__, BusClient.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ["True", "Client", "BusClient"]
