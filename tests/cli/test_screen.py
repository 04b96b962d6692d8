"""What a person sees of a conversation, on a terminal of our own."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import up_to
from tests.support.terminal import Terminal
from vigil.cli.chat.conversation import Conversation
from vigil.cli.chat.prose import drawn
from vigil.cli.chat.screen import PROMPT, TerminalScreen
from vigil.cli.output import printable


class Desk:
    """A screen, a terminal and somebody who types."""

    def __init__(self, columns: int = 40, rows: int = 200) -> None:
        self.terminal = Terminal(columns, rows)
        self.line: str | None = ""
        self.screen = TerminalScreen(
            "vigil",
            lambda: self.line,
            stream=cast(Any, self.terminal),
            size=lambda: (columns, rows),
        )
        self.terminal.write(PROMPT)

    def types(self, text: str) -> None:
        assert self.line is not None
        for character in text:
            self.line += character
            self.terminal.write(character + (" \r" if self.fills_row else ""))

    @property
    def fills_row(self) -> bool:
        """Whether the input line fills its last row: readline goes on to the next one."""
        return len(PROMPT + (self.line or "")) % self.terminal.columns == 0

    def enters(self) -> None:
        """What readline does: the cursor goes to the next row, and there is no prompt."""
        up = "\x1b[A" if self.fills_row else ""
        line, self.line = self.line, None
        self.terminal.write(up + "\n")
        self.screen.line_entered(line or "")
        self.line = ""
        self.terminal.write(PROMPT)

    def token(self, text: str, turn: int = 1, attempt: int = 1) -> None:
        self.screen.token({"type": "token", "turn": turn, "attempt": attempt, "text": text})

    def message(self, text: str, tag: str | None = None) -> None:
        frame = {"type": "message", "id": "m", "text": text, "cursor": 1, "caused_by": "e"}
        self.screen.message(frame | ({"tag": tag} if tag else {}))

    def progress(self, text: str, **more: Any) -> None:
        self.screen.progress({"type": "progress", "tool": "files__index", "text": text} | more)

    @property
    def lines(self) -> list[str]:
        return self.terminal.lines


def test_an_answer_appears_as_it_is_made_and_is_not_printed_twice() -> None:
    """I-3: the committed message replaces the tokens."""
    desk = Desk()
    desk.types("hi")
    desk.enters()
    for piece in ("Good ", "morning ", "to you."):
        desk.token(piece)
        assert desk.lines[-1].startswith("you>")
    assert desk.lines == ["you> hi", "vigil> Good morning to you.", "you>"]
    desk.message("Good morning to you.")
    assert desk.lines == ["you> hi", "vigil> Good morning to you.", "you>"]


def test_what_was_committed_replaces_what_was_streamed() -> None:
    """I-3: also if it differs, over several rows."""
    desk = Desk()
    desk.token("a much longer draft that needs more than one row\nand another one")
    desk.message("short")
    assert desk.lines == ["vigil> short", "you>"]


def test_a_new_attempt_discards_the_old_one() -> None:
    """P-5: tokens of an attempt that was given up disappear."""
    desk = Desk()
    desk.token("the first tr", attempt=1)
    desk.token("Second.", attempt=2)
    assert desk.lines == ["vigil> Second.", "you>"]


def test_a_follow_up_leaves_the_input_line_alone() -> None:
    """S-9: it is tagged, and what was typed is still there, with the cursor behind it."""
    desk = Desk(columns=60)
    desk.types("I was just abo")
    desk.message("Reminder: stretch", tag="Agent follow-up")
    assert desk.lines == ["vigil (Agent follow-up)> Reminder: stretch", "you> I was just abo"]
    assert desk.terminal.cursor == (1, len("you> I was just abo"))


def test_a_streamed_follow_up_gets_its_tag_when_it_is_committed() -> None:
    """S-9."""
    desk = Desk(columns=80)
    desk.token("Did you stretch?")
    desk.message("Did you stretch?", tag="Agent follow-up")
    assert desk.lines == ["vigil (Agent follow-up)> Did you stretch?", "you>"]


@pytest.mark.parametrize("length", [13, 14, 15, 16, 34, 35, 36, 60])
def test_a_long_input_line_is_taken_away_whole(length: int) -> None:
    """Also one that ends at the right edge (20 columns, 5 of them the prompt)."""
    desk = Desk(columns=20)
    desk.message("first")
    desk.types("abcdefghijkl"[: length % 12] + "x" * (length - length % 12))
    before = desk.lines
    desk.message("yes")
    assert desk.lines == ["vigil> first", "vigil> yes", *before[1:]]
    desk.types("!")
    assert desk.lines[-1].endswith("!")


@pytest.mark.parametrize("length", [4, 15, 35, 40])
def test_a_line_entered_while_an_answer_is_made_goes_above_it(length: int) -> None:
    desk = Desk(columns=20)
    desk.message("first")
    desk.token("Counting: one, ")
    desk.types("x" * length)
    desk.enters()
    desk.token("two.")
    desk.message("Counting: one, two.")
    lines = desk.lines
    assert lines[0] == "vigil> first"
    assert "".join(lines[1:-3]) == "you> " + "x" * length
    assert lines[-3:] == ["vigil> Counting: on", "e, two.", "you>"]


def test_a_notice_does_not_disturb_an_answer_in_the_making() -> None:
    desk = Desk()
    desk.types("hm")
    desk.token("one ")
    desk.screen.notice("connection lost")
    desk.token("two")
    assert desk.lines == ["connection lost", "vigil> one two", "you> hm"]


@pytest.mark.parametrize("is_made", [False, True])
def test_how_far_a_call_is_stands_in_one_line_until_it_is_over(is_made: bool) -> None:
    """X-1: it passes; what was said and what is typed stay, and a server's word is one line."""
    desk = Desk(columns=40)
    before = ["vigil> let me look"] if is_made else []
    if is_made:
        desk.token("let me look")
    desk.progress("0 %")
    desk.types("and")
    desk.progress("50 %: reading\n\x1b[2J" + "x" * 100)
    assert desk.lines[:-2] == before
    assert desk.lines[-2].startswith("files__index: 50 %: reading")
    assert desk.lines[-1] == "you> and"
    desk.enters()
    assert desk.lines[-1] == "you>"
    assert not any("files__index" in line for line in desk.lines)
    desk.progress("90 %")
    desk.screen.notice("connected again")
    desk.progress("95 %")
    assert desk.lines[-2:] == ["files__index: 95 %", "you>"]
    desk.progress("100 %", is_over=True)
    desk.progress("late", is_over=True)
    if is_made:
        desk.progress("1")
        desk.message("let me look")
    told = ["you> and", "connected again"]
    assert desk.lines == [*told, *before, "you>"]


def test_control_characters_of_a_model_do_not_reach_the_terminal() -> None:
    """A message can't clear the screen, forge a prompt line or hide what it says."""
    desk = Desk()
    desk.message("a\x1b[2Jb\rc\x07\u202ed")
    assert desk.lines == ["vigil> a[2Jbcd", "you>"]


@given(
    pieces=st.lists(st.text(max_size=30), max_size=8),
    typed=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60),
    columns=st.integers(12, 60),
)
def test_streaming_ends_as_if_the_message_had_been_printed_whole(
    pieces: list[str], typed: str, columns: int
) -> None:
    """I-3: whatever comes in whatever pieces, the screen shows the message once."""
    pieces = ["x", *(_narrow(p) for p in pieces)]
    streamed, whole = Desk(columns), Desk(columns)
    streamed.types(typed)
    whole.types(typed)
    for piece in pieces:
        streamed.token(piece)
    streamed.message("".join(pieces))
    whole.message("".join(pieces))
    assert streamed.lines == whole.lines


def _narrow(text: str) -> str:
    """Keep what our small terminal knows the width of."""
    return "".join(c for c in printable(text) if c == "\n" or " " <= c <= "~")


ANSWER = """It costs:

| tariff | a month |
|--------|--------:|
| small  | 9.50    |

* *one*&#x202e;
* <b>two</b> and ![three](https://a.example/3.png)
"""


def test_what_has_a_structure_is_drawn_once_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of what was shown while it was made; HTML is text, and no code of the text's."""
    monkeypatch.setenv("NO_COLOR", "1")
    desk = Desk(columns=40)
    desk.types("half a")
    for start in range(0, len(ANSWER), 7):
        desk.token(ANSWER[start : start + 7])
    desk.message(ANSWER)
    assert [" ".join(line.split()) for line in desk.lines if line.strip("━─ ")] == [
        "vigil>",
        "It costs:",
        "tariff a month",
        "small 9.50",
        "• one",
        "• <b>two</b> and picture: three",
        "(https://a.example/3.png)",
        "you> half a",
    ]


FORMULAS = r"""**So** \(a_1*b_1*c\) and $x*y*z$ and $5:
$$
\begin{matrix}a\\
- b\end{matrix}
$$
"""


def test_a_formula_is_shown_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stars, backslashes and lines are its own; what stands beside it is drawn."""
    monkeypatch.setenv("NO_COLOR", "1")
    desk = Desk(columns=60)
    desk.message(FORMULAS)
    assert [line for line in desk.lines if line] == [
        "vigil>",
        r"So \(a_1*b_1*c\) and $x*y*z$ and $5:",
        "$$",
        r"\begin{matrix}a\\",
        r"- b\end{matrix}",
        "$$",
        "you>",
    ]


@pytest.mark.parametrize("is_colourless", [True, False])
def test_colours_can_be_off(monkeypatch: pytest.MonkeyPatch, is_colourless: bool) -> None:
    """And a terminal without is a terminal all the same."""
    if is_colourless:
        monkeypatch.setenv("NO_COLOR", "1")
    else:
        monkeypatch.delenv("NO_COLOR", raising=False)
    written: list[str] = []
    desk = Desk(columns=40)
    monkeypatch.setattr(desk.terminal, "write", written.append)
    desk.message("so **it** is\n\n```py\nif x: pass\n```")
    desk.screen.notice("told")
    codes = re.findall(r"\x1b\[[0-9;]*([a-zA-Z])", "".join(written))
    assert ("m" in codes) != is_colourless
    assert "J" in codes


@up_to(100)
@given(st.text(alphabet="ab*_`#>-|\n[]()<&;x1 \x1b\x9b"))
def test_no_escape_code_of_a_text_is_written(text: str) -> None:
    made = drawn(printable(text), 30, has_colours=False)
    assert made is None or not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", made)


async def test_what_was_said_during_an_answer_is_due_after_it() -> None:
    """Ctrl-C stops it then, too: it left, as the answer before it was taken for its own."""
    desk = Desk()
    conversation = Conversation(cast(Any, None), "ann:vigil:t1", desk.screen)
    for _ in range(3):
        await conversation.say("and?")
    first, second, third = conversation._unconfirmed
    for number, id_ in enumerate((first, second, third)):
        accepted = {"type": "accepted", "id": id_, "event_id": f"e{number}", "seq": number}
        await conversation._hear(accepted)

    async def hears(caused_by: str, **more: Any) -> bool:
        frame = {"type": "message", "id": f"m{caused_by}", "text": "so", "cursor": 1}
        await conversation._hear(frame | {"caused_by": caused_by} | more)
        return conversation.is_answer_due

    assert await hears("timer", tag="Agent follow-up")
    assert await hears("e0")
    assert not await hears("e2"), "one answer to both"
    await conversation.say("and?")
    (last,) = conversation._unconfirmed
    await conversation._hear({"type": "error", "id": last, "detail": "no", "status": 422})
    assert not conversation.is_answer_due
