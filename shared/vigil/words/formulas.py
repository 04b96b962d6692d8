r"""Formulas in a text in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. Pure.

A library finds those between dollars; those between brackets are found here, since its rule for
them leaves out what stands behind one on its line. A formula is found before anything else: its
stars, underscores and backslashes are its own. Amounts of money aren't formulas.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.ruler import RuleOptionsType
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MARKS_MAX: Final = 400
"""Of what may begin or end a formula; each that is left open is looked for to the text's end."""
INLINE: Final = frozenset({"math_inline", "math_inline_double"})
BLOCK: Final = "math_block"
LENGTH_MAX: Final = 2_000
"""Characters of a formula; what is longer between two marks is text."""
_ENDS: Final = {"$": "$", "$$": "$$", "\\(": "\\)", "\\[": "\\]"}
_FINDS_END: Final = {"\\(": re.compile(r"(?<!\\)\\\)"), "\\[": re.compile(r"(?<!\\)\\\]")}
_BEHIND: Final[RuleOptionsType] = {"alt": ["paragraph", "reference", "blockquote", "list"]}
"""Where a formula of its own lines may stand without an empty line before it."""
_NAMED: Final = re.compile(r"\\[a-zA-Z]+\*?(\s*\{[^{}]*\})?")
_SENTENCE: Final = re.compile(r"[^\W\d_]{2}[,.;:]?\s+[^\W\d_]{2}")
_AMOUNT: Final = re.compile(r"\d[\d.,]*[^\W\d_]{0,2}\s.*[^\W\d_]{2,}", re.S)


def marks_of(text: str) -> int:
    """Return how many marks of formulas a text has."""
    return sum(text.count(mark) for mark in ("$", "\\(", "\\["))


def is_formula(source: str) -> bool:
    r"""Return whether what stands between two marks is a formula, and neither an amount nor words.

    >>> [is_formula(one) for one in ("x^2", r"\text{if so then} x", "5 here, or 6", "so it is")]
    [True, True, False, False]
    """
    if len(source) > LENGTH_MAX:
        return False
    bare = _NAMED.sub(" ", source)
    return bool(source.strip()) and not _SENTENCE.search(bare) and not _AMOUNT.match(bare)


def source_of(token: Token) -> str:
    """Return a formula as it was written, with its marks."""
    return f"{token.markup}{token.content}{_ENDS.get(token.markup, token.markup)}"


def find_formulas(parser: MarkdownIt, *, as_text: bool) -> None:
    """Let a parser find formulas.

    Args:
        as_text: whether they are text, as they were written, and not tokens of their own.
    """
    from mdit_py_plugins.dollarmath.index import math_block_dollar, math_inline_dollar

    dollars = math_inline_dollar(allow_space=False, allow_digits=False, allow_double=True)
    block = math_block_dollar(allow_labels=False, allow_blank_lines=False)
    parser.inline.ruler.before("escape", "formula_dollars", _careful(dollars))
    parser.inline.ruler.before("escape", "formula_brackets", _brackets)
    parser.block.ruler.before("fence", "formula_dollars", _unless_asked(block), _BEHIND)
    parser.block.ruler.before("fence", "formula_brackets", _bracket_lines, _BEHIND)
    if as_text:
        parser.core.ruler.push("formulas_as_text", _as_text)


def _careful(find: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """Return a rule that takes no amounts of money for formulas."""

    def rule(state: StateInline, silent: bool) -> bool:
        start, text = state.pos, state.src
        if text[start] != "$" or (start and text[start - 1].isalnum()):
            return False
        if not find(state, True):
            return False
        end, state.pos = state.pos, start
        is_single = not text.startswith("$$", start)
        is_within = text[end : end + 1].isalnum()
        if is_single and (is_within or not is_formula(text[start + 1 : end - 1])):
            return False
        return find(state, silent)

    return rule


def _brackets(state: StateInline, silent: bool) -> bool:
    mark = state.src[state.pos : state.pos + 2]
    if mark not in _FINDS_END:
        return False
    end = _FINDS_END[mark].search(state.src, state.pos + 2, state.posMax)
    if end is None or not is_formula(content := state.src[state.pos + 2 : end.start()]):
        return False
    if not silent:
        token = state.push("math_inline" if mark == "\\(" else "math_inline_double", "math", 0)
        token.content, token.markup = content, mark
    state.pos = end.end()
    return True


def _unless_asked(
    find: Callable[[StateBlock, int, int, bool], bool],
) -> Callable[[StateBlock, int, int, bool], bool]:
    """Return a rule that leaves nothing behind if it's only asked whether something is there."""

    def rule(state: StateBlock, first: int, last: int, silent: bool) -> bool:
        count, line = len(state.tokens), state.line
        is_found = find(state, first, last, silent)
        if is_found and silent:
            del state.tokens[count:]
            state.line = line
        return is_found

    return rule


def _bracket_lines(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    r"""Find a formula from a `\[` that begins a line to a `\]` that ends one."""
    if state.is_code_block(first):
        return False
    lines: list[str] = []
    for number in range(first, last):
        line = state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
        if number == first:
            if not line.startswith("\\["):
                return False
            line = line[2:]
        elif not line.strip():
            return False
        end = _FINDS_END["\\["].search(line)
        lines.append(line[: end.start()] if end else line)
        if end is None:
            continue
        content = "\n".join(lines)
        if line[end.end() :].strip() or not is_formula(content):
            return False  # more stands behind it: it's one within a paragraph
        if not silent:
            token = state.push(BLOCK, "math", 0)
            token.content, token.markup, token.block = content, "\\[", True
            token.map = [first, number + 1]
            state.line = number + 1
        return True
    return False


def _as_text(state: StateCore) -> None:
    """Make formulas the words that were written, a line each."""
    from markdown_it.token import Token

    tokens: list[Token] = []
    for token in state.tokens:
        for one in token.children or ():
            if one.type in INLINE:
                one.content, one.type, one.tag = source_of(one), "text", ""
        if token.type != BLOCK:
            tokens.append(token)
            continue
        words = [Token("text", "", 0, content=one) for one in source_of(token).split("\n")]
        children = [part for word in words for part in (Token("hardbreak", "br", 0), word)][1:]
        level, content = token.level, source_of(token)
        tokens += [
            Token("paragraph_open", "p", 1, level=level, block=True),
            Token("inline", "", 0, level=level + 1, block=True, content=content, children=children),
            Token("paragraph_close", "p", -1, level=level, block=True),
        ]
    state.tokens = tokens
