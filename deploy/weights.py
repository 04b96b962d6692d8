"""Takes what memory reads of WordLlama out of its wheel: 18 MB of 33, and none of its libraries.

    python deploy/weights.py

This Python gets a folder `vigil_weights` beside its packages. The wheel is the one for Linux on
x86-64 and Python 3.13, by the hashes of weights.lock, whatever runs here: only data files are used.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

FILES = (
    "wordllama/weights/l2_supercat_256.safetensors",
    "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
)
WHEEL = (
    "--python-version=3.13", "--implementation=cp",
    "--platform=manylinux_2_17_x86_64", "--platform=manylinux2014_x86_64",
)  # fmt: skip


def main() -> None:
    folder = Path(sysconfig.get_path("purelib")) / "vigil_weights"
    if all((folder / Path(name).name).is_file() for name in FILES):
        return
    lock = Path(__file__).with_name("weights.lock")
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(
            [
                sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download",
                "--no-deps", "--only-binary=:all:", *WHEEL, "--dest", place,
                "--require-hashes", "--requirement", lock,
            ],
            check=True,
        )  # fmt: skip
        (wheel,) = Path(place).glob("wordllama-*.whl")
        take(wheel, folder)


def take(wheel: Path, folder: Path) -> None:
    """Write the files of a wheel into a folder, with the licence that they come under."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        licence = next(name for name in archive.namelist() if Path(name).name == "LICENSE")
        for name in (licence, *FILES):
            (folder / Path(name).name).write_bytes(archive.read(name))


if __name__ == "__main__":
    main()
