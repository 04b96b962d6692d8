"""`vigil chat` at a real pseudo-terminal, with readline, as a person has it."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import tmux, warm
from tests.support.cli import Cli, running_vigil
from tests.support.pictures import pdf
from tests.support.terminal import Terminal

COLUMNS, ROWS = 100, 40
DEADLINE_S = 30.0
PRESSED_AGAIN_S = 3.0


class Person:
    """Types into a terminal and looks at it."""

    def __init__(self, cli: Cli, *args: str, command: str = "chat") -> None:
        self.terminal = Terminal(COLUMNS, ROWS)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        self.written = ""
        """All that the chat wrote, as it is."""
        self.process = cli.start_at(slave, command, *args)

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def pastes(self, text: str) -> None:
        """Paste, as a terminal does: line ends as Enter, and in marks if it was asked for them."""
        begin, end = ("\x1b[200~", "\x1b[201~") if self.terminal.is_bracketing else ("", "")
        self.types(begin + text.replace("\n", "\r") + end)

    def look(self) -> None:
        """Let the terminal take what was written meanwhile; wait a moment for it."""
        if select.select([self._master], [], [], 0.05)[0]:
            with contextlib.suppress(OSError):
                text = self._decoder.decode(os.read(self._master, 65536))
                self.written += text
                self.terminal.write(text)

    def sees(self, *wanted: str) -> list[str]:
        """Wait until the screen shows all of it; return the lines."""
        self._look_until(lambda: all(word in self._screen for word in wanted), str(wanted))
        return self.terminal.lines

    def gets_busy(self) -> None:
        """Wait until no line is read: readline has left the terminal, and the chat has it show
        nothing that is typed. It stays so where the gateway is frozen."""
        between_lines = termios.ICANON  # and no ECHO, which readline leaves on for an instant
        watched = termios.ICANON | termios.ECHO
        self._look_until(
            lambda: termios.tcgetattr(self._slave)[3] & watched == between_lines,
            "a rest in reading",
        )

    def ends(self) -> int:
        self._look_until(lambda: self.process.poll() is not None, "its end")
        self.look()
        return self.process.returncode

    def gives_up(self) -> int:
        """Press Ctrl-C; once more, where nothing came of it: Python loses one that comes after it
        drew a prompt and before it waits for a key."""
        self.process.send_signal(signal.SIGINT)
        pressed = time.monotonic()

        def is_over() -> bool:
            nonlocal pressed
            if time.monotonic() > pressed + PRESSED_AGAIN_S:
                self.process.send_signal(signal.SIGINT)
                pressed = time.monotonic()
            return self.process.poll() is not None

        self._look_until(is_over, "its end")
        return self.ends()

    def _look_until(self, is_there: Callable[[], bool], what: str) -> None:
        """Look at least once, as what is there may be from before."""
        deadline = time.monotonic() + DEADLINE_S
        self.look()
        while not is_there():
            assert time.monotonic() < deadline, f"{what} not in\n{self._screen}"
            self.look()

    @property
    def _screen(self) -> str:
        return "\n".join(self.terminal.lines)

    @property
    def has_terminal_restored(self) -> bool:
        return termios.tcgetattr(self._slave) == self.before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)


@contextlib.contextmanager
def person(cli: Cli, *args: str, command: str = "chat") -> Iterator[Person]:
    somebody = Person(cli, *args, command=command)
    try:
        yield somebody
    finally:
        somebody.close()


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    home = tmp_path_factory.mktemp("terminal") / "home"
    with running_vigil(home, "--processes=6", VIGIL_MODEL__REHEARSAL_WORD_MS="20") as running:
        yield running


@contextlib.contextmanager
def frozen_gateway(cli: Cli) -> Iterator[None]:
    pid = cli.run_state.services["gateway"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_readme_scene(cli: Cli) -> None:
    """S-8, S-9, I-3, P-2: a reminder is answered, and comes back while the person types."""
    with person(cli, "--new") as ann:
        ann.sees("you>")
        ann.types("remind me in 2 seconds to stretch\r")
        ann.sees("vigil> I'll remind you in 2 seconds to stretch.")
        ann.types("half a sen")
        lines = ann.sees("vigil (Agent follow-up)> Reminder: stretch")
        assert lines[-1] == "you> half a sen", "the input line survived"
        ann.types("tence\r")
        lines = ann.sees('You said: "half a sentence"')
        assert sum("Reminder: stretch" in line for line in lines) == 1
        assert sum("I'll remind you" in line for line in lines) == 1
        assert sum(line.startswith("you> half") for line in lines) == 1
        ann.types("\x04")
        assert ann.ends() == 0
        ann.sees("Go on with: vigil chat --thread chat-")
        assert ann.has_terminal_restored


def test_who_mistypes_an_agents_name_is_told_that_a_new_one_begins(cli: Cli) -> None:
    """I-1, P-4: it does, with the first word; until then nothing is made."""
    new = ("No agent is called vigl yet; did you mean vigil?", "It begins with what you say.")
    with person(cli, "--agent", "vigl") as ann:
        ann.sees(*new, "you>")
        ann.types("\x04")
        assert ann.ends() == 0
    assert not (cli.home / "agents" / "vigl").exists()
    with person(cli, "--agent", "vigl") as ann:
        ann.sees(*new, "you>")
        ann.types("hello\r")
        ann.sees('You said: "hello"')
        ann.types("\x04")
        assert ann.ends() == 0
    for known in ("vigl", "vigil"):
        with person(cli, "--agent", known) as ann:
            assert new[1] not in ann.sees("you>")
            ann.types("\x04")
            assert ann.ends() == 0


def test_the_answer_streams_and_stands_once(cli: Cli) -> None:
    """I-3: words appear before the answer is whole, and the whole answer appears once."""
    with person(cli) as ann:
        ann.sees("you>")
        ann.types("hello\r")
        partial = ann.sees("vigil> I")
        assert "hello" not in "".join(partial[2:]), "the answer ends with what was said"
        ann.sees('You said: "hello"')
        ann.types("what is pending\r")
        lines = ann.sees("othing is pending")
        assert sum('You said: "hello"' in line for line in lines) == 1
        assert sum(line.startswith("vigil>") for line in lines) == 2


def test_ctrl_c_ends_it_and_restores_the_terminal(cli: Cli) -> None:
    """P-2: exit code 130; the shell's prompt gets a line of its own, the person a way back."""
    with person(cli, "--new") as ann:
        ann.sees("you>")
        ann.types("half a")
        ann.sees("you> half a")
        ann.process.send_signal(signal.SIGINT)
        assert ann.ends() == 130
        assert ann.has_terminal_restored
        lines = ann.sees("Go on with: vigil chat --thread chat-")
        assert lines[-1].startswith("Go on with: ")
        assert "Traceback" not in "".join(lines)
        assert ann.terminal.cursor == (len(lines), 0)


def test_ctrl_c_stops_an_answer_and_then_leaves(cli: Cli) -> None:
    """What was heard of it stays; the conversation goes on, until it is pressed where no answer is
    due."""
    with person(cli, "--thread", "stop1") as ann:
        ann.sees("you>")
        ann.types(f"{'on and ' * 120}on\r")  # whose answer takes some seconds
        ann.sees("vigil> I am")
        ann.process.send_signal(signal.SIGINT)
        lines = ann.sees("stopped; Ctrl-C again leaves")
        assert any(line.startswith("vigil> I am") for line in lines)
        ann.types("hello again\r")
        ann.sees('You said: "hello again"')
        ann.process.send_signal(signal.SIGINT)
        assert ann.ends() == 130
        assert ann.has_terminal_restored
    stops = [
        one["data"]["payload"] for one in recorded(cli, "stop1") if one["kind"] == "in.control"
    ]
    assert [one["op"] for one in stops] == ["stop"]


def test_lines_that_go_on_are_one_message_and_come_again_by_the_arrow(cli: Cli) -> None:
    with person(cli, "--thread", "more1") as ann:
        ann.sees("you>")
        ann.types("first\\\rsecond\r")
        ann.sees('You said: "first')
        ann.types("\x04")
        assert ann.ends() == 0
    with person(cli, "--thread", "more1") as ann:
        ann.sees("you>")
        ann.types("\x1b[A")
        ann.sees("you> first second")
        ann.types("\r")
        ann.sees('You said: "first second')
        ann.types("\x04")
        assert ann.ends() == 0
    texts = [one["text"] for one in said_in(recorded(cli, "more1"))]
    assert texts == ["first\nsecond", "first second"]


def test_ctrl_d_counts_also_while_a_line_is_dealt_with(cli: Cli) -> None:
    with person(cli, "--new") as ann:
        ann.sees("you>")
        ann.types("hello\r")
        ann.sees('You said: "hello"')
        with frozen_gateway(cli):
            ann.types("/why\r")  # which asks the gateway
            ann.gets_busy()
            ann.types("\x04")
        assert ann.ends() == 0
        assert "^D" not in "".join(ann.terminal.lines)
        assert ann.has_terminal_restored


def recorded(cli: Cli, thread: str) -> list[dict[str, Any]]:
    """Return the records of a thread, the oldest first."""
    found = cli("tail", "session", f"me:vigil:{thread}", "--no-follow", "--json").stdout
    return [json.loads(line) for line in found.splitlines()]


def said_in(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the person said, as it is recorded."""
    return [one["data"]["payload"] for one in records if one["kind"] == "in.said.user"]


def test_a_pasted_paragraph_is_one_message(cli: Cli) -> None:
    """P-2: it can be looked at and added to, Enter says it, and one answer comes."""
    with person(cli, "--thread", "paste1") as ann:
        ann.sees("you>")
        ann.pastes("first line\nsecond line\n\nthird")
        ann.sees("you> first line", "second line", "third")
        ann.types(" and more\r")
        ann.sees("You said:")
        ann.types("\x04")
        assert ann.ends() == 0
        assert ann.has_terminal_restored
        assert not ann.terminal.is_bracketing
    records = recorded(cli, "paste1")
    texts = [payload["text"] for payload in said_in(records)]
    assert texts == ["first line\nsecond line\n\nthird and more"]


def test_files_go_with_what_is_said_next(cli: Cli, tmp_path: Path) -> None:
    """Issue 14: once, whatever is wrong with others; a line of a longer paste is no order."""
    plan = tmp_path / "the plan.pdf"
    plan.write_bytes(pdf(2))
    with person(cli, "--thread", "files1") as ann:
        ann.sees("you>")
        ann.types("/attach\r")
        ann.sees("/attach PATH: an image")
        ann.types("/attach none.png\r")
        ann.sees("not attached: No such file")
        ann.types(f"/attach {cli.home}\r")
        ann.sees("not attached: is no file")
        ann.types(f"/attach '{plan}'\r")
        ann.sees("goes with what you say next: the plan.pdf, 2 pages, 1 kB")
        ann.types("does it fit\r")
        ann.sees('You said: "does it fit')
        ann.pastes(f"/attach {plan}\nhm")
        ann.types("\r")
        ann.sees('You said: "/attach')
        ann.types("\x04")
        assert ann.ends() == 0
    records = recorded(cli, "files1")
    said = said_in(records)
    names = [[one["name"] for one in payload.get("attachments", ())] for payload in said]
    assert names == [["the plan.pdf"], []]


def test_what_was_said_last_is_said_otherwise(cli: Cli) -> None:
    """P-2: `/edit` and `/retry`; what each is for, if it can't be that."""
    with person(cli, "--thread", "edit1") as ann:
        ann.sees("you>")
        ann.types("/retry\r")
        ann.sees("not taken back")
        ann.types("the old one\r")
        ann.sees('You said: "the old one')
        ann.types("/edit\r")
        ann.sees("/edit TEXT: what you said last")
        ann.types("/edti the new one\r")
        ann.sees("There is no /edti. Did you mean /edit?")
        ann.types("/edit the new one\r")
        ann.sees('You said: "the new one')
        ann.types("/retry\r")
        ann.sees("answered anew")
        ann.types("and more\r")
        ann.sees('You said: "and more')
        ann.types("\x04")
        assert ann.ends() == 0
    records = recorded(cli, "edit1")
    said = said_in(records)
    assert [one["text"] for one in said] == [
        "the old one",
        "the new one",
        "the new one",
        "and more",
    ]
    assert ["replaces" in one for one in said] == [False, True, True, False]


def test_a_reply_names_what_it_replies_to(cli: Cli) -> None:
    """F-2: `/reply` to the newest, or by how long ago; what it is for, if it can't be that."""
    with person(cli, "--thread", "reply1") as ann:
        ann.sees("you>")
        ann.types("/reply hm\r")
        ann.sees("the agent said nothing here")
        ann.types("the first\r")
        ann.sees('You said: "the first')
        ann.types("the second\r")
        ann.sees('You said: "the second')
        ann.types("/reply\r")
        ann.sees("/reply [2] TEXT: to what the agent said last")
        ann.types("/reply 2 and that?\r")
        ann.sees('You said: "and that?')
        ann.types("\x04")
        assert ann.ends() == 0
    records = recorded(cli, "reply1")
    answers = [r["data"]["id"] for r in records if r["kind"] == "out.said"]
    payload = said_in(records)[-1]
    assert (payload["text"], payload["reply_to"]["id"]) == ("and that?", answers[0])
    assert payload["reply_to"]["quote"].startswith("I am the rehearsal model")


def test_orders_to_the_conversation_itself(cli: Cli) -> None:
    """What can be asked and done without leaving it; nothing of it is said to the agent but what
    is meant for it."""
    with person(cli, "--thread", "orders1") as ann:
        ann.sees("you>")
        ann.types("/why\r")
        ann.sees("the agent said nothing here that long ago")
        ann.types("/remind\r")
        ann.sees("nothing is to come here")
        ann.types("/remind in 20 minutes to stretch\r")
        ann.sees("I'll remind you in 20 minutes to stretch.")
        ann.types("/remind\r")
        ann.sees("  Reminder: stretch")
        ann.types("/why\r")
        ann.sees("You wrote")
        ann.types("/tasks\r")
        ann.sees("there are no tasks")
        ann.types("/stop\r")
        ann.sees("what it was doing here comes to nothing")
        ann.types("//help me\r")
        ann.sees('You said: "/help me"')
        ann.types("/help\r")
        ann.sees("/new: begin a conversation", "/attach PATH: an image")
        ann.types("/new\r")
        ann.sees("This is a new conversation, chat-")
        ann.types("hello there\r")
        ann.sees('You said: "hello there"')
        ann.types("/exit\r")
        assert ann.ends() == 0
        ann.sees("Go on with: vigil chat --thread chat-")
    texts = [one["text"] for one in said_in(recorded(cli, "orders1"))]
    assert texts == ["Remind me in 20 minutes to stretch", "/help me"]


def test_a_conversation_is_deleted_where_it_goes_on(cli: Cli) -> None:
    """Issue 32: `/delete` says what it would do, `/delete yes` does it, and the chat ends."""
    with person(cli, "--thread", "gone1") as ann:
        ann.sees("you>")
        ann.types("keep this\r")
        ann.sees('You said: "keep this')
        ann.types("/delete\r")
        ann.sees("/delete yes: delete this conversation")
        ann.types("/delete yes\r")
        ann.sees("me:vigil:gone1 is deleted.")
        assert ann.ends() == 0
    listed = cli("sessions", "--json").stdout
    assert "gone1" not in listed


def test_an_input_of_several_lines_survives_what_arrives(cli: Cli) -> None:
    """I-3: a follow-up appears above all of it, once."""
    with person(cli) as ann:
        ann.sees("you>")
        ann.types("remind me in 2 seconds to stretch\r")
        ann.sees("vigil> I'll remind you in 2 seconds to stretch.")
        ann.pastes("one\ntwo")
        lines = ann.sees("vigil (Agent follow-up)> Reminder: stretch", "you> one")
        lines = ann.sees("Reminder: stretch", "two")
        assert lines[-2:] == ["you> one", "two"]
        assert sum(line == "you> one" for line in lines) == 1
        ann.types("\x04")


def test_nothing_is_lost_when_the_gateway_dies(cli: Cli) -> None:
    """S-10, X-5: the chat reconnects; what was typed meanwhile is said once. Another one in the
    same thread that is late has the answer, too."""
    with person(cli, "--thread", "lost1") as ann, person(cli, "--thread", "lost1") as late:
        ann.sees("you>")
        late.sees("you>")
        ann.types("one\r")
        ann.sees('You said: "one"')
        late.sees('You said: "one"')
        late.process.send_signal(signal.SIGSTOP)
        os.kill(cli.run_state.services["gateway"], signal.SIGKILL)
        ann.sees("connection lost")
        ann.types("two\r")
        ann.sees("connected again", 'You said: "two"')
        ann.types("\x04")
        assert ann.ends() == 0
        late.process.send_signal(signal.SIGCONT)
        late.sees('You said: "two"')
    records = cli("tail", "session", "me:vigil:lost1", "--no-follow").stdout
    assert records.count("in.said.user") == 2


def test_history_of_one_terminal_is_not_shown_again(cli: Cli, tmp_path: Path) -> None:
    """S-10: what this client acknowledged stays acknowledged."""
    with person(cli, "--thread", "again1") as ann:
        ann.sees("you>")
        ann.types("hello\r")
        ann.sees('You said: "hello"')
        ann.types("\x04")
        assert ann.ends() == 0
    with person(cli, "--thread", "again1") as ann:
        ann.sees("you>")
        ann.types("what is pending\r")
        lines = ann.sees("vigil> ")
        assert not any("You said" in line for line in lines)


def test_the_cursor_stays_where_it_is_in_a_line_while_an_answer_comes(cli: Cli) -> None:
    """I-3: in the first of two rows, say; nothing above it is written over, and what is typed there
    is seen there."""
    line = "a question that takes two rows of the terminal, " * 3
    with person(cli, "--thread", "middle1") as ann:
        ann.sees("you>")
        ann.types("hello\r")
        ann.sees("vigil> I am")
        ann.types(line + "\x01")
        ann.sees("check back")
        for letter in "Xylo":
            ann.types(letter)
            ann.look()
        lines = ann.sees('You said: "hello"', "you> Xyloa question")
        assert sum(one.startswith("vigil> I am") for one in lines) == 1
        first = next(i for i, one in enumerate(lines) if one.startswith("you> Xylo"))
        assert "".join(lines[first:]) == f"you> Xylo{line}".rstrip()
        assert ann.terminal.cursor == (first, len("you> Xylo"))


def test_what_was_pasted_never_reaches_the_terminal_as_it_is(cli: Cli) -> None:
    """F-4: also where the line is drawn again under an answer: as readline shows it."""
    with person(cli, "--thread", "paste2") as ann:
        ann.sees("you>")
        ann.types("hello\r")
        ann.sees("vigil> I am")
        ann.pastes("a\x1b[2Jb\tc\x07")
        lines = ann.sees('You said: "hello"')
        assert lines[-1] == "you> a^[[2Jb    c^G"
        assert "\x1b[2J" not in ann.written
        assert "\x07" not in ann.written


def test_a_line_that_goes_on_stays_above_an_answer_in_the_making(cli: Cli) -> None:
    with person(cli, "--thread", "more2") as ann:
        ann.sees("you>")
        ann.types("hello\r")
        ann.sees("vigil> I am")
        ann.types("first\\\r")
        ann.sees("you> first\\", "check back")
        ann.types("second\r")
        lines = ann.sees("you> second", 'You said: "hello"')
        said = [one for one in lines if one.startswith(("you> ", "vigil> "))]
        assert said[:4] == ["you> hello", "you> first\\", "you> second", said[3]]
        assert said[3].startswith("vigil> I am")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_restores_the_terminal(cli: Cli, number: signal.Signals) -> None:
    with person(cli, "--thread", "signal1") as ann:
        ann.sees("you>")
        ann.types("half a")
        ann.sees("you> half a")
        assert not ann.has_terminal_restored
        ann.process.send_signal(number)
        assert ann.ends() == -number
        assert ann.has_terminal_restored
        assert not ann.terminal.is_bracketing


def test_who_leaves_waits_for_no_gateway_and_is_told_what_may_not_be_stored(cli: Cli) -> None:
    """P-2: with a call under way, too, which took up to a minute."""
    with person(cli, "--thread", "frozen1") as ann:
        ann.sees("you>")
        with frozen_gateway(cli):
            ann.types("two\r")
            ann.types("/why x\r")
            ann.gets_busy()
            begun = time.monotonic()
            while ann.process.poll() is None and time.monotonic() < begun + 12:
                ann.process.send_signal(signal.SIGINT)  # it stops an answer, and then leaves
                ann.look()
            assert ann.process.returncode == 130
            lines = ann.sees("It may not be stored: 'two'")
            assert "Traceback" not in "".join(lines)


def test_who_reads_it_may_end_first(cli: Cli, tmp_path: Path) -> None:
    """P-2: as `head` does; that was taken for a lost connection, for ever."""
    said = tmp_path / "said"
    said.write_text("hello\n")
    seen, shown = os.pipe()
    os.close(seen)
    with said.open() as stdin, (tmp_path / "told").open("w+") as told:
        process = warm.start(
            "vigil.cli", ("chat", "--thread", "head1"), env=cli.environ,
            stdin=stdin.fileno(), stdout=shown, stderr=told.fileno(),
        )  # fmt: skip
        os.close(shown)
        try:
            assert process.wait_within(DEADLINE_S) == 1
        finally:
            process.kill()
        told.seek(0)
        assert told.read() == ""


def test_ctrl_c_at_a_question_is_one_anywhere(cli: Cli) -> None:
    """P-2: exit code 130, as the help says; without an answer it's a failure."""
    with person(cli, "me:vigil:none1", command="delete") as ann:
        ann.sees("for good? [y/N]:")
        assert ann.gives_up() == 130
        assert "Traceback" not in "".join(ann.terminal.lines)
    with person(cli, "me:vigil:none1", command="delete") as ann:
        ann.sees("for good? [y/N]:")
        ann.types("\x04")
        assert ann.ends() == 1


@pytest.mark.skipif(not tmux.is_there(), reason="no tmux")
def test_ctrl_z_and_another_width_of_the_window(cli: Cli, tmp_path: Path) -> None:
    """The shell has its terminal; back in the chat the line is as it was, and an answer that is
    being made when the window gets narrower stands there once."""
    with tmux.pane(cli, tmp_path, 80) as window:
        window.types("cold-vigil chat --thread stopped1")
        window.presses("Enter")
        window.sees("you>")
        window.types("half a")
        window.sees("you> half a")
        window.presses("C-z")
        window.sees("Stopped")
        window.types("echo the shell''s; fg")
        window.presses("Enter")
        window.sees("the shells\ncold-vigil chat --thread stopped1\nyou> half a")
        window.types(" word")
        window.presses("Enter")
        window.sees("vigil> I am")
        window.resizes(50)
        shown = window.sees("4711", 'half a word"')
        assert shown.count("vigil> I am") == 1
        window.presses("C-d")
