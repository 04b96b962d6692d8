"""``make chaos``: the long form, with counts; further arguments go to pytest.

Without arguments also every property with all of its examples, what else `make test` repeats less
often, and what it leaves out.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.examples import FULL

REST: Final = "hypothesis or repeated or (long and not chaos)"
"""What else has a long form; of the kill tests those that take theirs from the profile."""


def _pytest(*args: str) -> int:
    # A program of its own: plugins want to be imported by pytest, and hypothesis is here already.
    return subprocess.call([sys.executable, "-m", "pytest", *args])


if __name__ == "__main__":
    folder = str(Path(__file__).parent)
    code = _pytest(folder, "-m", "chaos", "--long", "-s", *sys.argv[1:])
    if not sys.argv[1:]:
        code = code or _pytest("-m", REST, "--long", "--hypothesis-profile", FULL)
    sys.exit(code)
