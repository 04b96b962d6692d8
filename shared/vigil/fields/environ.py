"""Which variables of ours a process gets that we start. Pure.

A process' environment stays readable for its whole life, for whoever it runs as and in its core
dumps. So nobody gets a secret that it doesn't read: programs get a few variables by name, services
all but secrets of others. What runs in a sandbox gets none of ours; its own box sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

PROGRAM: Final = re.compile(
    r"PATH|HOME|USER|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TEMP|TMP|SYSTEMROOT|LD_LIBRARY_PATH|DYLD_\w+"
    r"|PYTHON\w+|VIRTUAL_ENV|GO(MAXPROCS|MEMLIMIT|GC|DEBUG)|(OMP|MKL|OPENBLAS|RAYON)_NUM_THREADS"
    r"|MALLOC_\w+|SSL_CERT_(FILE|DIR)",
    re.ASCII,
)
"""What programs need: to be found, to speak a language, to know how much of a machine is theirs."""

_SECRET: Final = re.compile(
    r"\w*(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(_FILE)?|(ANTHROPIC|OPENAI)_\w+",
    re.ASCII,
)
_OURS: Final = re.compile(r"(VIGIL_(?!TOKEN)|OTEL_)\w+", re.ASCII)
"""Settings; those of the OpenTelemetry SDK are read by every service."""
_READ_BY: Final = {
    "cortex": re.compile(r"(ANTHROPIC|OPENAI)_\w+", re.ASCII),
    "memory": re.compile(r"(QDRANT|EMBEDDER)_API_KEY(_FILE)?", re.ASCII),
}


def of_program(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a program gets that is ours to start and reads no setting: the broker.

    >>> of_program({"PATH": "/bin", "ANTHROPIC_API_KEY": "sk", "NATS_URL": "nats://x"})
    {'PATH': '/bin'}
    """
    return {name: value for name, value in environ.items() if PROGRAM.fullmatch(name)}


def of_service(environ: Mapping[str, str], service: str) -> dict[str, str]:
    """Return what a service gets: everything but the secrets that it doesn't read.

    What is a secret is told by its name. A name that tells nothing goes through, as it does to
    every program that a shell starts.

    >>> found = {"ANTHROPIC_API_KEY": "sk", "AWS_SECRET_ACCESS_KEY": "x", "VIGIL_PORT": "1"}
    >>> sorted(of_service(found, "cortex")), sorted(of_service(found, "gateway"))
    (['ANTHROPIC_API_KEY', 'VIGIL_PORT'], ['VIGIL_PORT'])
    """
    mine = _READ_BY.get(service)
    return {
        name: value
        for name, value in environ.items()
        if not _SECRET.fullmatch(name)
        or _OURS.fullmatch(name)
        or (mine is not None and mine.fullmatch(name))
    }
