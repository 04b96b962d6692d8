"""The authorities that the system trusts, read once for a process.

Each HTTP client that is made reads them anew, for 30 to 50 ms, whether it will speak TLS or not.
"""

from __future__ import annotations

import functools
import os
import ssl
from typing import Any

import certifi
import httpcore2

_read = httpcore2.default_ssl_context
_create = ssl.create_default_context


@functools.cache
def _read_once(trust_env: bool, _file: str | None, _folder: str | None) -> ssl.SSLContext:
    return _read(_trust_env=trust_env)


def _shared(*, _trust_env: bool = True) -> ssl.SSLContext:
    named = (os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    return _read_once(_trust_env, *named)


@functools.cache
def _create_once(file: str) -> ssl.SSLContext:
    return _create(cafile=file)


def _created(*args: Any, **options: Any) -> ssl.SSLContext:
    """Share what the clients of models and of Qdrant ask for."""
    file = options.get("cafile")
    is_known = file in (certifi.where(), os.environ.get("SSL_CERT_FILE"))
    if file is None or not is_known or args or len(options) > 1:
        return _create(*args, **options)
    return _create_once(file)


def read() -> None:
    """Read them now, for all that is forked from this process."""
    for trust_env in (True, False):
        _shared(_trust_env=trust_env)
    _create_once(certifi.where())


def share() -> None:
    """Have all clients of this process share one context for each place of the authorities."""
    httpcore2.default_ssl_context = _shared
    ssl.create_default_context = _created
