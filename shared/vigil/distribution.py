"""What is installed here: the name that pip knows Vigil by, and whether the services came with it.

The package is `vigil`, the distribution `vigil-agents`: on PyPI the shorter name is somebody
else's. The wheel holds the services and prompts, too, in `vigil/programs`, which its `.pth` puts on
the path. Where no such files are read (``pip install --target``), there is the client alone.
"""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path
from typing import Final

from .errors import ConfigError
from .topology import SERVICES

NAME: Final = "vigil-agents"
WEIGHTS: Final = {
    "l2_supercat_256.safetensors": "weights",
    "l2_supercat_tokenizer_config.json": "tokenizers",
}
"""The files of WordLlama that memory reads, and the folder of its package that has each."""
PROGRAMS: Final = "pipx install vigil-agents, `make up` in a checkout, or the images"
"""What brings the services along."""


def command_for(extra: str = "") -> str:
    """Return what installs the libraries of an extra, or what everybody has.

    >>> command_for(), command_for("otel")
    ('pip install vigil-agents', "pip install 'vigil-agents[otel]'")
    """
    return f"pip install '{NAME}[{extra}]'" if extra else f"pip install {NAME}"


def weights() -> dict[str, Path] | None:
    """Return where the files of `WEIGHTS` are: beside Vigil, or in an installed WordLlama."""
    for package, is_whole in (("vigil_weights", False), ("wordllama", True)):
        spec = importlib.util.find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            found = {
                name: Path(folder) / (inner if is_whole else "") / name
                for name, inner in WEIGHTS.items()
            }
            if all(path.is_file() for path in found.values()):
                return found
    return None


def weights_command() -> str:
    """Return what installs WordLlama, which memory takes the weights of its vectors from.

    Of any of its wheels only data files are read, so the one for Linux does on any machine, and
    the last one on a Python that it has none for.
    """
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
            f"the services aren't on this Python's path ({', '.join(missing)}): Vigil starts with "
            f"{PROGRAMS}; to use one that runs elsewhere, set VIGIL_URL and VIGIL_TOKEN"
        )
