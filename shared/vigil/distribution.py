"""What is installed here: the name that pip knows Vigil by, and whether the services came with it.

The package is `vigil`, the distribution `vigil-agents`: on PyPI the shorter name is somebody
else's. The wheel holds the package and the command line, for a client of a gateway elsewhere; the
services run from a checkout, or from its images.
"""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from typing import Final

from .errors import ConfigError
from .topology import SERVICES

NAME: Final = "vigil-agents"
WITHOUT_WHEEL: Final[tuple[int, ...]] = (3, 14)
"""From this Python on, WordLlama has none."""
CHECKOUT: Final = "run `make up` in a checkout of Vigil, or its images"


def command_for(extra: str) -> str:
    """Return what installs the libraries of an extra.

    >>> command_for("memory")
    "pip install 'vigil-agents[memory]'"
    """
    return f"pip install '{NAME}[{extra}]'"


def weights_command() -> str:
    """Return what installs WordLlama, which memory takes the weights of its vectors from.

    Its wheels end with Python 3.13. Of any of them only data files are read, so the last one does,
    and the one for Linux on any machine.
    """
    if tuple(sys.version_info) < WITHOUT_WHEEL:
        return command_for("memory")
    return (
        "`make up` does it, or pip install --no-deps --only-binary=:all: --python-version 3.13 "
        "--implementation cp --platform manylinux2014_x86_64 "
        f"--target {sysconfig.get_path('purelib')} wordllama"
    )


def is_importable(name: str) -> bool:
    """Whether there is a module of that name; its packages are imported, not itself."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def check_services() -> None:
    """Raise ConfigError where the services can't be started, since they aren't there."""
    missing = [name for name in SERVICES if not is_importable(f"services.{name}.__main__")]
    if missing:
        raise ConfigError(
            f"the services aren't installed here ({', '.join(missing)}): the wheel of {NAME} holds "
            f"the command line and the client library. To start Vigil, {CHECKOUT}; to use one that "
            "runs elsewhere, set VIGIL_URL and VIGIL_TOKEN"
        )
