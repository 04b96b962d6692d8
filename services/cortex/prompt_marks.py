"""What stands before parts of a prompt, for who writes one and who reads one. Pure."""

from __future__ import annotations

from typing import Final

EARLIER: Final = "[Summary of what was before]"
OFFERED: Final = "[What stands above was offered to memory before: save nothing of it again]"
PERSON: Final = "person:"
MEMBER: Final = "person "
