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
    "$", "$$\n", "\\(", "\\[\n", "\\[x", "$a ", "\\)",
)  # fmt: skip
DEEP: Final = ("> ", "- ", "1. ", "*a ", "[", "![", "**a *b ", "> - ", "<b>", "(")

FORMULAS: Final = (
    r"\href{javascript:window.isHurt=1}{go}", r"\url{https://a.example}", r"\eqref{main}",
    r"\style{position:fixed;top:0}{x}", r"\class{undo}{x}", r"\cssId{main}{x}", r"\label{main}x",
    r"\text{<script>window.isHurt=1</script>}", r"\text{</mtext></math><img src=x onerror=y>}",
    r"\mbox{<a href='javascript:x'>}", "</math><script>window.isHurt=1</script>",
    '"><svg onload=window.isHurt=1>', "&lt;script&gt;", r"\text{\&lt;b\&gt;}", r"\unicode{x202e}",
    "a\u202eb", "\\text{pay\u2066fdp}", r"\raisebox{9em}{paid}", r"\hspace{99em}x",
    r"\hspace{-9em}x", r"\kern99em x", r"\rule{99em}{99em}", r"\phantom{hidden}",
    r"\color{white}{hidden}x", r"\llap{over}", r"\smash{x}", r"\def\a{b}\a",
    r"\newcommand{\a}{b}\a", r"\let\a=b", r"\require{x}", r"\includegraphics{https://a.example/x}",
    r"\input{/etc/passwd}", r"\htmlData{x=y}{z}", r"\frac{a", "x^", r"\left(x", "a&b", "%", "#1",
    r"\begin{array}{|c|c|}\hline a&b\\\hline\end{array}", "\\", "$", "`x`", "**x**",
    "[a](javascript:x)", "<b>", "|", "\n> x", 300 * "w", 2_500 * "x", 200 * "-",
    20 * "{" + "x" + 20 * "}", 40 * r"\sqrt{" + "x" + 40 * "}",
    r"\begin{matrix}" + 100 * "a&" + r"b\end{matrix}",
)  # fmt: skip
AS_FORMULAS: Final = (
    "so ${}$ it is", "$$\n{}\n$$", "\\({}\\)", "\\[\n{}\n\\]", "[${}$](https://a.example)",
    "|a|\n|-|\n|${}$|", "> - $${}$$", "![\\({}\\)](https://a.example)",
)  # fmt: skip


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
    for formula in FORMULAS:
        for forms in (AS_FORMULAS[:4], AS_FORMULAS[4:]):
            name = f"formula {formula[:60]} in {forms}"
            yield name, "\n\n".join(form.replace("{}", formula) for form in forms)
    yield from ((f"open {start!r}", f"{start}word") for start in OPEN)
    yield from ((f"deep {start!r}", 200 * start + "x") for start in DEEP)
    for name, part in (("word", "w" * 9_000), ("address", f"https://a.example/{'w' * 9_000}")):
        yield from ((f"long {name} in {one}", one.format(part)) for one in AROUND)
    yield "wide table", f"{'|a' * 400}\n{'|-' * 400}\n{'|' * 400}\n" + "|\n" * 700
    yield "many rules", "***\n" * 700
    yield "megabyte", "<b>*a*" * 200_000
