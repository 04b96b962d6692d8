"""The vector engine that waits a tenth of a second for a folder in use, not 10 s."""

from __future__ import annotations

from services.memory.vectors import engine

if __name__ == "__main__":
    engine.LOCK_S_MAX = 0.1  # type: ignore[misc]
    engine.main()
