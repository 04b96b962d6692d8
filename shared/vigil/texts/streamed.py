"""What of an answer in the making goes to somebody who can take nothing back. Pure.

Tokens of a model are replaced by the message that is committed; a stream of OpenAI's has no word
for that. So of a message only what was not streamed follows, and what turned out otherwise is said
whole behind it.
"""

from __future__ import annotations

from typing import Final

GAP: Final = "\n\n"


class StreamedAnswer:
    """One answer, as it was sent so far."""

    def __init__(self) -> None:
        self.text = ""
        """All that was sent."""
        self._part = ""
        """What was sent of a message that isn't committed."""
        self._of: tuple[object, int] | None = None
        """Whose tokens those are: a turn, and which try."""

    def token(self, turn: object, attempt: int, text: str) -> str:
        """Take a piece in the making; return what is to be sent.

        >>> spoken = StreamedAnswer()
        >>> spoken.token(3, 0, "It "), spoken.token(3, 0, "is"), spoken.said("It is 4.")
        ('It ', 'is', ' 4.')
        """
        gap = ""
        if self._of != (turn, attempt):
            self._of, self._part = (turn, attempt), ""
            gap = self._gap()
        self._part += text
        return self._sent(gap + text)

    def said(self, text: str) -> str:
        """Take a message that is committed; return what is to be sent.

        >>> spoken = StreamedAnswer()
        >>> spoken.token(3, 0, "Let me look."), spoken.said("It is 4.")
        ('Let me look.', '\\n\\nIt is 4.')
        """
        part, self._part, self._of = self._part, "", None
        if part and text.startswith(part):
            return self._sent(text[len(part) :])
        return self._sent(self._gap() + text)

    def _gap(self) -> str:
        return GAP if self.text and not self.text.endswith(GAP) else ""

    def _sent(self, text: str) -> str:
        self.text += text
        return text
