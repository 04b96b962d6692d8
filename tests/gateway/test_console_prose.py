"""What an agent wrote in Markdown, as markup: tags of ours, links that say where, nothing lost."""

from __future__ import annotations

import html.parser
import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.console.shapes.prose import prose
from tests.support.examples import up_to
from tests.support.hostile_markdown import ADDRESSES, AROUND, AS_FORMULAS, FORMULAS, MARKUP, cases

TAGS: Final = {
    "p": {"dir", "class"}, "ul": set(), "ol": {"start"}, "li": {"dir"}, "blockquote": {"dir"},
    "table": set(), "thead": set(), "tbody": set(), "tr": set(), "th": {"dir", "class"},
    "td": {"dir", "class"}, "em": set(), "strong": set(), "del": set(), "code": {"dir"},
    "pre": {"tabindex", "dir"}, "span": {"class", "tabindex", "role", "aria-label"},
    "bdi": {"class"}, "hr": set(), "br": set(),
    "div": {"class", "tabindex", "role", "aria-label"}, "button": {"type", "class"},
    "a": {"href", "target", "rel"},
}  # fmt: skip
"""Every tag that may come about, with its attributes."""
LEVELS: Final = {"displaystyle", "scriptlevel"}
MATH: Final = {
    "b": set(), "i": set(), "mn": set(), "mpadded": set(), "mroot": set(), "msqrt": set(),
    "msub": set(), "msubsup": set(), "msup": set(), "mtext": set(), "mtr": set(),
    "math": {"display"}, "mfrac": LEVELS | {"linethickness"}, "mi": {"mathvariant"},
    "mo": {"form", "lspace", "rspace", "stretchy", "symmetric", "minsize", "maxsize"},
    "mover": {"accent"}, "mrow": LEVELS | {"class"}, "mspace": {"width"}, "mstyle": LEVELS,
    "mtable": LEVELS, "mtd": {"class"}, "munder": {"accentunder"}, "munderover": set(),
}  # fmt: skip
"""Within a formula; none leads anywhere, has a name, or is seen elsewhere."""
SAID: Final = re.compile(r"[a-z]+|[0-2]?(\.\d+)?em|[0-2]")
ALONE: Final = frozenset({"hr", "br"})
LINK: Final = re.compile(r"(https?://[a-z0-9.\[\]:-]+([/?#].*)?|mailto:[^@/?]+@[a-z0-9.-]+(\?.*)?)")
UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
GROWTH: Final = 42


class Looked(html.parser.HTMLParser):
    """What markup has, and that each of its tags is one that may be there, in order."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.text = ""
        self.links: list[str] = []
        self._open: list[str] = []
        self.feed(markup)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_math = tag == "math" or "math" in self._open
        assert set(dict(attrs)) <= (MATH if is_math else TAGS)[tag], (tag, attrs)
        assert not is_math or all(SAID.fullmatch(said or "") for _, said in attrs), attrs
        if tag == "a":
            assert "a" not in self._open
            assert dict(attrs)["rel"] == "noopener noreferrer nofollow"
            self.links.append(str(dict(attrs)["href"]))
        if tag not in ALONE:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    handle_comment = handle_decl = handle_pi = unknown_decl


def looked(text: str) -> Looked:
    """Return what a text becomes, which may act in no way."""
    markup = str(prose(text))
    seen = Looked(markup)
    assert all(LINK.fullmatch(one) for one in seen.links), seen.links
    assert not UNSEEN.search(markup)
    assert len(markup) <= 4_500 + GROWTH * len(text)
    return seen


def test_nothing_that_is_written_acts() -> None:
    """Several hundred hostile texts: no tag, attribute or link but those that may be."""
    tried = dict(cases())
    assert len(tried) >= 300
    for name, text in tried.items():
        try:
            looked(text)
        except (AssertionError, KeyError) as error:
            raise AssertionError(name) from error


@up_to(300)
@given(
    st.lists(
        st.sampled_from(
            [
                *ADDRESSES,
                *MARKUP,
                *AROUND,
                *FORMULAS,
                *AS_FORMULAS,
                "$",
                "|",
                "\n",
                "\n\n",
                "> ",
                "- ",
                "*",
                "`",
                "[",
            ]
        )
        | st.text(max_size=12),
        max_size=25,
    )
)
def test_nothing_that_is_put_together_acts(parts: list[str]) -> None:
    looked("".join(parts))


@up_to(200)
@given(
    st.lists(
        st.sampled_from(
            [
                "> ",
                "- ",
                "1. ",
                "\n",
                "\n\n",
                "word",
                "*",
                "_",
                " ",
                "|",
                "~",
                "$",
                "$$",
                "\\(",
                "\\)",
                "\\[",
                "\\]",
            ]
        )
    )
)
def test_no_word_is_lost(parts: list[str]) -> None:
    """However deep it stands, and whatever is left open."""
    words = [f"w{number}x" if one == "word" else one for number, one in enumerate(parts)]
    seen = looked("".join(words))
    for word in words:
        if word.startswith("w"):
            assert word in seen.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**now** and\nthen", "<strong>now</strong> and<br>then"),
        ("# Weather", '<p class="head" dir="auto"><strong>Weather</strong></p>'),
        ("3. a\n4. b", '<ol start="3"><li dir="auto">a</li>'),
        ("|a|b|\n|-|-:|\n|1|2|", '<td dir="auto">1</td><td dir="auto" class="number">2</td>'),
        ("```py\nif x: pass\n```", '<span class="c-key">if</span> x: <span'),
        ("```cobol\nMOVE 1\n```", '<bdi>cobol</bdi>'),
        ("```diff\n-a\n+b\n```", '<span class="c-out">-a</span>\n<span class="c-in">+b</span>'),
        ("> " * 30 + "deep", "&gt; deep</p>"),
        ("so $x^2$", "so <math><msup><mi>x</mi><mn>2</mn></msup></math>"),
        (r"so \(a_1*b_1*c\)", '<mo lspace="0.2222em" rspace="0.2222em">∗</mo>'),
        ("$$\nx\n- y\n$$", '<math display="block"><mi>x</mi><mo>−</mo><mi>y</mi></math></div>'),
        ("so\n\\[\nx\n= y\n\\]\nand", '<mi>y</mi></math></div><p dir="auto">and'),
        (r"\[x\] and more", '<mi>x</mi></math></span> and more'),
        (r"$\mathbf{x}\in\mathbb{R}$", "<mi>𝐱</mi><mo>∈</mo><mi>ℝ</mi>"),
        (r"$\boxed{4}$", '<mrow class="boxed"><mn>4</mn></mrow>'),
        (r"$\begin{aligned}a&=b\end{aligned}$", '<mtd class="right"><mi>a</mi></mtd>'),
        (r"$\href{https://a.example}{x}$", '<code dir="auto">$\\href{https://a.example}{x}$<'),
        ("$$\n\\phantom{x}\n$$", '<code>$$\n\\phantom{x}\n$$</code>'),
        ("[$x$](https://a.example)", '<code dir="auto">$x$</code></a> <bdi'),
    ],
)  # fmt: skip
def test_the_structure_of_a_text_is_seen(text: str, shown: str) -> None:
    assert shown in prose(text)


@pytest.mark.parametrize(
    "text",
    [
        "it's $5 and $6", "$5, or 6$ there", "from $5-$6, US$7 and 8$", "$HOME/$USER/$PATH",
        "a$b$c", "$20k here, $30k there$", "it costs $ 5 $", r"so \$x\$", "`$x$`",
        "$5 for two/$6 for three", "so $it is said$", "$" * 300 + "x" + "$" * 300,
    ],
)  # fmt: skip
def test_what_is_paid_is_no_formula(text: str) -> None:
    """Nor what is a variable of a shell, code, or a sentence."""
    assert "<math" not in prose(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://a.example/x", "https://a.example/x"),
        ("see a.example and b@a.example", "see a.example and b@a.example"),
        ("<b@a.example>", "b@a.example"),
        ("[my bank](https://a.example/x)", "my bank (a.example)"),
        ("[https://bank.example](https://a.example)", "https://bank.example (a.example)"),
        ("[a.example.b](https://a.example)", "a.example.b (a.example)"),
        ("[write](mailto:b@a.example?subject=x)", "write (b@a.example)"),
        ("![cat](https://a.example/?q=1)", "picture: cat (a.example)"),
        ("[![cat](https://b.example)](https://a.example)", "picture: cat (a.example)"),
        ("[x](https://a\u0440\u0440.example)", "x (xn--a-5tba.example)"),
        ("[x](/console/leave)", "[x](/console/leave)"),
    ],
)
def test_a_link_says_where_it_leads(text: str, told: str) -> None:
    """So that its words can't name another place."""
    assert looked(text).text == told
