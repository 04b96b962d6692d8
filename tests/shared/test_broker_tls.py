"""A broker of one's own behind TLS (SPEC X-4, X-6): who can't use it is told why, in words."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import nkeys
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.stack import Stack, settings_of
from vigil import runtime
from vigil.broker.ports import free_port
from vigil.broker.process import binary
from vigil.bus.bus import Bus
from vigil.errors import ConfigError, Unavailable
from vigil.observe.probes import Probes
from vigil.processes.process import start
from vigil.sdk.bus_client import BusClient
from vigil.settings import config, credentials

DAY = datetime.timedelta(days=1)


def certify(folder: Path) -> Path:
    """Write a certificate of 127.0.0.1 that vouches for itself, and its key; return the first."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a broker of one's own")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return folder / "cert.pem"


@pytest.fixture(scope="module")
def seed() -> bytes:
    return bytes(nkeys.encode_seed(b"7" * 32, nkeys.PREFIX_BYTE_USER))


@pytest.fixture
async def url(tmp_path: Path, seed: bytes) -> AsyncIterator[str]:
    """A broker with TLS that knows one key, and has nothing stored."""
    certify(tmp_path)
    port = free_port()
    conf = {
        "host": "127.0.0.1", "port": port,
        "jetstream": {"store_dir": str(tmp_path / "store")},
        "tls": {"cert_file": str(tmp_path / "cert.pem"), "key_file": str(tmp_path / "key.pem")},
        "authorization": {"users": [{"nkey": nkeys.from_seed(seed).public_key.decode()}]},
    }  # fmt: skip
    (tmp_path / "nats.conf").write_text(json.dumps(conf))
    with (tmp_path / "nats.log").open("wb") as log:
        broker = await start(
            str(binary()), "-c", str(tmp_path / "nats.conf"), stdout=log, stderr=log
        )
    try:
        async with asyncio.timeout(10):
            while b"Server is ready" not in (tmp_path / "nats.log").read_bytes():
                await asyncio.sleep(0.01)
        yield f"tls://127.0.0.1:{port}"
    finally:
        broker.kill()
        await broker.wait()


async def refusal(url: str, seed: bytes) -> str:
    with pytest.raises(Unavailable) as refused:
        await Bus.connect(url, role="admin", seed=seed, wait_s=1.0)
    return str(refused.value)


async def test_who_is_refused_is_told_why(
    url: str,
    seed: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    untrusted = await refusal(url, seed)
    assert "its certificate can't be verified (self-signed certificate)" in untrusted
    assert "SSL_CERT_FILE" in untrusted
    assert "nothing listens there" in await refusal(f"tls://127.0.0.1:{free_port()}", seed)
    assert "nobody knows that name" in await refusal("tls://nowhere.invalid:4222", seed)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    stranger = bytes(nkeys.encode_seed(b"8" * 32, nkeys.PREFIX_BYTE_USER))
    with caplog.at_level(logging.WARNING, "asyncio"):
        assert "it knows no such credential" in await refusal(url, stranger)
        for scheme in ("tls", "nats"):  # the server says in its first line that it's under TLS
            bus = await Bus.connect(url.replace("tls", scheme, 1), role="admin", seed=seed)
            assert bus.is_connected
            await bus.close()
    assert [one.getMessage() for one in caplog.records if one.name == "asyncio"] == []


async def test_a_program_is_told_the_same(url: str, seed: bytes, tmp_path: Path) -> None:
    (tmp_path / "seed").write_bytes(seed)
    credential = {
        "url": url, "seed_file": str(tmp_path / "seed"), "publish": "event.ann.ci",
        "inbox_prefix": "_INBOX", "stream": "SIGNALS", "consumer": "out", "domain": "vigil",
    }  # fmt: skip
    with pytest.raises(Unavailable, match="certificate can't be verified"):
        await BusClient.connect(credential)


async def test_a_service_tells_what_the_broker_lacks(
    url: str, seed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for `vigil provision`, and says so once: in its log, and where it's probed."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    settings = settings_of(tmp_path / "home")
    settings.credentials.mkdir(parents=True)
    (settings.credentials / "delivery.seed").write_bytes(seed)
    waits: asyncio.Queue[str] = asyncio.Queue()
    running = asyncio.create_task(
        runtime.keep_running(
            "delivery", settings, url, on_ready=lambda _: None, on_wait=waits.put_nowait
        )
    )
    try:
        reason = await asyncio.wait_for(waits.get(), 10)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert "stream not found" in reason
    assert "`vigil provision`" in reason
    probes = Probes()
    probes.waits_for = reason
    assert reason in probes.answer("/readyz")[2].decode()


@pytest.mark.usefixtures("own_broker")
async def test_a_seed_of_another_service_is_told(bare: Stack, tmp_path: Path) -> None:
    """It was waited for in vain, and nothing named the cause; so was half of a seed."""
    theirs = credentials.load(bare.settings.credentials, "memory")
    with pytest.raises(Unavailable, match="the credential is that of another service"):
        await Bus.connect(bare.broker.url, role="cortex", seed=theirs)
    (tmp_path / "cortex.seed").write_bytes(theirs[:-9] + b"\n")
    with pytest.raises(ConfigError, match="holds no seed of an nkey"):
        credentials.load(tmp_path, "cortex")


def test_a_url_with_a_password_is_refused(tmp_path: Path) -> None:
    """It would be shown, and is of no use: services have keys."""
    with pytest.raises(ConfigError, match="leave out user and password"):
        config.load({"NATS_URL": "nats://ann:secret@broker:4222"}, home=tmp_path)
