"""``python -m services.executor.sandbox``: which sandbox works here."""

from __future__ import annotations

from .choice import main

if __name__ == "__main__":
    main()
