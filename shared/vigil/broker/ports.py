"""Which port of loopback the embedded broker listens on."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import structlog

log = structlog.get_logger("vigil.broker")


def free_port() -> int:
    """Return a loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def kept_port(home: Path) -> int | None:
    """Return the port that the embedded broker of this home had last; None: it never ran."""
    try:
        port = msgspec.json.decode((home / "nats" / "nats.conf").read_bytes())["port"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        return None
    return port if isinstance(port, int) and 0 < port < 65536 else None


def lasting_port(home: Path) -> int:
    """Choose the port that the broker of this home listens on.

    It is kept, since credentials of programs on the bus name it; another one only if it's taken.
    """
    kept = kept_port(home)
    if kept is not None and _is_free(kept):
        return kept
    port = free_port()
    if kept is not None:
        log.warning("the broker's port is taken", action="broker.port_taken", port=kept, now=port)
    return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Like the server: what the last one left in TIME_WAIT doesn't count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
