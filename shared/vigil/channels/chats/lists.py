"""Lists and paragraphs of Markdown, for networks that know neither: as lines with marks. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token


class OpenLists:
    """The lists that are open where a text is being written."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        """Of each the number of its next item; 0: it has none."""

    def mark_of(self, token: Token) -> str | None:
        """Return what is written for a token; None: it's of no list, and ends no paragraph."""
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                start = token.attrGet("start") or 1
                self._numbers.append(int(start) if token.type == "ordered_list_open" else 0)
                return ""
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
                return "" if self._numbers else "\n"
            case "list_item_open":
                return self._item()
            case "paragraph_close":
                return "\n" if self._numbers else "\n\n"
        return None

    def _item(self) -> str:
        number = self._numbers[-1]
        self._numbers[-1] += bool(number)
        return "  " * (len(self._numbers) - 1) + (f"{number}. " if number else "• ")
