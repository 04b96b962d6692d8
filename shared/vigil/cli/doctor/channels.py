"""What `vigil doctor` says of the ways in and out: channels, hooks, metrics, a cluster.

By the configuration and the files that it names; nobody is called, no name is looked up. A
secret is never shown.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

from vigil.errors import InvalidInput
from vigil.observe.checks import Check, fail, ok, others_can_read, warn
from vigil.settings import secrets
from vigil.settings.config import Settings
from vigil.settings.sections import Hook


def examine(settings: Settings) -> Iterator[Check]:
    """Check what is set up, one after another."""
    config = settings.config
    for name, channel in config.channels.items():
        yield from channel.examine(f"channel {name}", settings.home)
    for name, hook in config.hooks.items():
        yield _hook(f"hook {name}", hook, settings.home)
    if config.metrics.port:
        yield _metrics(config.metrics.host, config.metrics.port)
    if config.nats.replicas > 1 or "," in config.nats.url:
        yield _replicas(config.nats.url, config.nats.replicas)


# ---------------------------------------------------------------- in


def _hook(name: str, hook: Hook, home: Path) -> Check:
    try:
        secrets.of_section("secrets", "\n".join(hook.secrets), hook.secrets_file, home)
    except InvalidInput as error:
        return fail(name, str(error), "set secrets, or secrets_file with one on each line")
    path = home / Path(hook.secrets_file).expanduser()
    if hook.secrets_file and others_can_read(path):
        return warn(name, f"others can read {path}", f"chmod 600 {path}")
    return ok(name, f"into {hook.user}:{hook.agent}:{hook.thread}, {hook.scheme} signatures")


# ---------------------------------------------------------------- operation


def _metrics(host: str, port: int) -> Check:
    where = f"{host}:{port}"
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        advice = "a service may have it already; each one here needs its own: VIGIL_METRICS__PORT"
        return warn("metrics", f"{where} is taken ({error.strerror or error})", advice)
    if not _is_loopback(host):
        return warn("metrics", f"{where} is for everybody who can reach it", "keep it inside")
    return ok("metrics", f"{where} is free")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _replicas(url: str, replicas: int) -> Check:
    if not url:
        found = f"{replicas} replicas, and the embedded broker is one node"
        return fail("replicas", found, "set NATS_URL to a cluster, or nats.replicas to 1")
    nodes = len(url.split(","))
    if replicas == 1:
        found = f"{nodes} nodes, and 1 replica of everything"
        return warn("replicas", found, "VIGIL_NATS__REPLICAS=3, then `vigil provision`")
    if replicas % 2 == 0:
        return warn("replicas", f"{replicas}: no safer than one less", "use 3 or 5")
    return ok("replicas", f"{replicas} of everything")
