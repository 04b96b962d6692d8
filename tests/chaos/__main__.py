"""``make chaos``: the long form, with counts; further arguments go to pytest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    folder = str(Path(__file__).parent)
    sys.exit(pytest.main([folder, "-m", "chaos", "--long", "-s", *sys.argv[1:]]))
