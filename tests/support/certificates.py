"""The authorities that the system trusts, read once for a process.

Each HTTP client that is made reads them anew, for 30 to 50 ms, whether it will speak TLS or not.
"""

from __future__ import annotations

import functools
import os
import ssl

import httpcore2

_read = httpcore2.default_ssl_context


@functools.cache
def _read_once(trust_env: bool, _file: str | None, _folder: str | None) -> ssl.SSLContext:
    return _read(_trust_env=trust_env)


def _shared(*, _trust_env: bool = True) -> ssl.SSLContext:
    named = (os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    return _read_once(_trust_env, *named)


def read() -> None:
    """Read them now, for all that is forked from this process."""
    for trust_env in (True, False):
        _shared(_trust_env=trust_env)


def share() -> None:
    """Have all clients of this process share one context for each place of the authorities."""
    httpcore2.default_ssl_context = _shared
