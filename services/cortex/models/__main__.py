"""``python -m services.cortex.models``: what each configured model answers."""

from __future__ import annotations

from .trial import main

if __name__ == "__main__":
    main()
