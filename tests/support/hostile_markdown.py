"""Texts as somebody would write them who wants a page to do what it shouldn't, each with a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

ADDRESSES: Final = (
    "javascript:window.isHurt=1", "JaVaScRiPt:window.isHurt=1", "java\tscript:window.isHurt=1",
    "&#106;avascript:window.isHurt=1", "javascript&colon;window.isHurt=1", "\x01javascript:x",
    "vbscript:x", "data:text/html,<script>window.isHurt=1</script>", "data:image/svg+xml,<svg/>",
    "file:///etc/passwd", "blob:https://a.example/x", "about:blank", "//a.example/x",
    "/console/leave", "?do=stop", "#end", "\\\\a.example\\x", "https:a.example", "https:///x",
    "https://bank.example@a.example/", "https://a.example\\@bank.example/", "tel:1",
    "mailto:?bcc=a@a.example", "https://\u0430.example/%E2%80%AE", "https://a.example/?q=secret",
)  # fmt: skip
AS_LINKS: Final = (
    "[go]({})", "![see]({})", "<{}>", "[go]: {}\n\n[go]", "[![see]({0})]({0})", "[go](<{}>)",
    "[go]({} \"x\" onclick=\"window.isHurt=1\")", "so: {} !",
)  # fmt: skip
MARKUP: Final = (
    "<script>window.isHurt=1</script>", "<img src=x onerror=window.isHurt=1>",
    "<svg onload=window.isHurt=1>", "<iframe src=javascript:x></iframe>", "<object data=x>",
    "<style>*{display:none}</style>", "<link rel=stylesheet href=//a.example>",
    '<meta http-equiv=refresh content="0;url=//a.example">', "<form action=/console/leave>",
    "<input autofocus onfocus=window.isHurt=1>", "<details open ontoggle=window.isHurt=1>",
    "<base href=//a.example>", "<video src=//a.example/x>", "<a href=javascript:x>go</a>",
    "<!-- hidden -->", "<![CDATA[x]]>", "<?x y?>", "</article></main></body>", "<p id=main>",
    '<div hx-get="/console/leave" hx-trigger="load">', "<b style='position:fixed'>",
    '"><script>window.isHurt=1</script>',
)  # fmt: skip
AROUND: Final = (
    "{}", "so *{}* it is", "```html\n{}\n```", "```{}\nx\n```", "|a|b|\n|-|-|\n|{}|x|", "> {}",
    "[{}](https://a.example)", "![{}](https://a.example)", "`{}`", "# {}", "- {}",
)  # fmt: skip
TURNED: Final = ("\u202e", "\u2066", "\u200f", "&#x202e;", "&rlm;", "\u05d0\u05d1 ", "\ufeff")
OPEN: Final = (
    "```", "```py\nx = '", "**", "`", "[a](", "![a](https://a.example", "<https://a.example",
    "|a|\n|-", "~~", "[a]: ", "> - 1. ", "<!--", "<script>", "&#", "\\", "~~~\n<b>", "***bold",
)  # fmt: skip
DEEP: Final = ("> ", "- ", "1. ", "*a ", "[", "![", "**a *b ", "> - ", "<b>", "(")


def cases() -> Iterator[tuple[str, str]]:
    """Yield each with its name."""
    for address in ADDRESSES:
        for form in AS_LINKS:
            yield f"{form} of {address}", form.format(address)
    for markup in MARKUP:
        for around in AROUND:
            yield f"{markup} in {around}", around.format(markup)
    for mark in TURNED:
        for around in AROUND:
            yield f"{mark!r} in {around}", around.format(f"pay{mark}fdp.exe")
    yield from ((f"open {start!r}", f"{start}word") for start in OPEN)
    yield from ((f"deep {start!r}", 200 * start + "x") for start in DEEP)
    for name, part in (("word", "w" * 9_000), ("address", f"https://a.example/{'w' * 9_000}")):
        yield from ((f"long {name} in {one}", one.format(part)) for one in AROUND)
    yield "wide table", f"{'|a' * 400}\n{'|-' * 400}\n{'|' * 400}\n" + "|\n" * 700
    yield "many rules", "***\n" * 700
    yield "megabyte", "<b>*a*" * 200_000
