"""Whether a program that a test started takes connections yet."""

from __future__ import annotations

import socket


def is_listening(port: int) -> bool:
    """Return whether somebody listens on that port of loopback."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True
