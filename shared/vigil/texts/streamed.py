"""What of an answer in the making goes to somebody who can take nothing back. Pure.

Tokens of a model are replaced by the message that is committed; a stream of OpenAI's has no word
for that. So of a message only what was not streamed follows, and what turned out otherwise is said
whole behind it. Where a model writes the same again, in another try or since it was asked about it,
nothing is sent twice.
"""

from __future__ import annotations

from typing import Final

GAP: Final = "\n\n"


class StreamedAnswer:
    """One answer, as it was sent so far."""

    def __init__(self) -> None:
        self.text = ""
        """All that was sent."""
        self._shown = ""
        """What was sent last of a message that isn't committed."""
        self._part = ""
        """What the present try wrote so far."""
        self._of: tuple[object, int] | None = None
        """Whose tokens those are: a turn, and which try."""

    def token(self, turn: object, attempt: int, text: str) -> str:
        """Take a piece in the making; return what is to be sent.

        >>> spoken = StreamedAnswer()
        >>> spoken.token(3, 0, "It "), spoken.token(3, 0, "is"), spoken.said("It is 4.")
        ('It ', 'is', ' 4.')
        >>> spoken = StreamedAnswer()
        >>> spoken.token(3, 0, "It is 4."), spoken.token(4, 0, "It is"), spoken.said("It is 4.")
        ('It is 4.', '', '')
        """
        if self._of != (turn, attempt):
            self._of, self._part = (turn, attempt), ""
        self._part += text
        return self._more(self._part)

    def said(self, text: str) -> str:
        """Take a message that is committed; return what is to be sent.

        >>> spoken = StreamedAnswer()
        >>> spoken.token(3, 0, "Let me look."), spoken.said("It is 4.")
        ('Let me look.', '\\n\\nIt is 4.')
        """
        shown = self._shown.lstrip()
        if shown and text.startswith(shown):
            more = text[len(shown) :]
        else:
            more = "" if text == shown.rstrip() else f"{self._gap()}{text}"
        self._shown, self._part, self._of = "", "", None
        return self._sent(more)

    def _more(self, part: str) -> str:
        """Return what is to be sent of a text in the making: nothing, as long as it repeats."""
        shown = self._shown
        if shown.startswith(part):
            return ""
        goes_on = bool(shown) and part.startswith(shown)
        self._shown = part
        return self._sent(part[len(shown) :] if goes_on else f"{self._gap()}{part}")

    def _gap(self) -> str:
        return GAP if self.text and not self.text.endswith(GAP) else ""

    def _sent(self, text: str) -> str:
        self.text += text
        return text
