"""Where attachments are on the bus: `{upload,file}.{user}.{hash}.{part}`. Pure."""

from __future__ import annotations

import re
from typing import Final

from ..errors import InvalidInput
from ..subjects import check_part

ABOUT: Final = "about"
"""The part of an attachment that tells what it is; the others are numbers."""
FOR: Final = "for-"
"""Begins the part of an upload that tells which session is about to name it."""
_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


def attachment_part(stream: str, user: str, hash_: str, part: str) -> str:
    """Where a part of a person's file is, in UPLOADS or FILES.

    Raises:
        InvalidInput: the user or the hash has another form.

    >>> attachment_part("FILES", "ann", "0f" * 32, "0")[:14]
    'file.ann.0f0f0'
    """
    check_part("user", user)
    if _HASH.fullmatch(hash_) is None:
        raise InvalidInput("hash", "must be 64 hex digits")
    return f"{'file' if stream == 'FILES' else 'upload'}.{user}.{hash_}.{part}"
