"""``make chaos``: the long form, with counts; further arguments go to pytest.

Without arguments also every property with all of its examples, and what else `make test` repeats
less often.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.examples import FULL

if __name__ == "__main__":
    folder = str(Path(__file__).parent)
    code = pytest.main([folder, "-m", "chaos", "--long", "-s", *sys.argv[1:]])
    if not sys.argv[1:]:
        code = code or pytest.main(["-m", "hypothesis or repeated", "--hypothesis-profile", FULL])
    sys.exit(code)
