r"""A command line that a standing grant may cover: one program and its arguments.

Of a shell's language nothing is left but words and quotes: whatever else it knows (operators,
redirection, newlines, substitution, globs, variables, escapes, `~`, braces, comments, history,
assignments before the program) and every character beyond printable ASCII makes a line one that no
grant covers. So there is one way to read what is left, and the executor runs exactly these words,
without a shell: that nobody reads them otherwise doesn't depend on which shell is installed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ..contracts.board.grant import Argv
from ..errors import InvalidInput
from .harmless import leaves_open

WORDS_MAX: Final = 64
_WORD: Final = re.compile(r"""(?:[A-Za-z0-9_./:,+@%=-]|'[^']*'|"[^"$`\\!]*")+""")
_PIECE: Final = re.compile(r"""'([^']*)'|"([^"]*)"|([^'"]+)""")
_PROGRAM: Final = re.compile(r"/?(?:[A-Za-z0-9_+.-]+/)*[A-Za-z0-9_+][A-Za-z0-9_+.-]*")
_ENDINGS: Final = tuple(map(re.compile, (r"\.so.*$", r"[-.]?[0-9][0-9.]*[a-z]?$", r"\..*$")))
"""What follows a program's name in a file's: its version."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LAUNCHERS: Final = _words(
    """
    at batch bwrap busybox chroot chrt command coproc cpulimit daemonize dbus-run-session doas
    env eval exec expect fakeroot firejail flock gdb ionice ld ld-linux ld-linux-x86-64 lldb
    ltrace mosh nice nohup nsenter numactl parallel perf pkexec prlimit rlwrap run-parts runuser
    screen script setarch setpriv setsid ssh start-stop-daemon stdbuf strace su sudo systemd-run
    taskset time timeout tmux toybox trap tsocks unbuffer unshare valgrind watch xargs xvfb-run
    builtin source . enable crontab
    """
)
"""They run what their arguments name: a grant for one would be a grant for everything."""
INTERPRETERS: Final = _words(
    """
    ash bash bun clojure csh dash deno elixir erl fish ghci groovy guile irb java jshell julia
    ksh lua luajit mksh node nodejs ocaml octave osascript perl php pwsh pypy python r racket
    rscript ruby scala scheme sh swift tclsh tcsh wish zsh
    """
)
"""They run code: of their options, or of a file. Only with a file that the grant names."""
WHOLE: Final = _words(
    """
    awk cargo cmake curl docker ed emacs ex find gawk git-shell gmake helm kubectl less make man
    mawk more mysql nano nawk ninja npm npx nvim pip pipx podman psql rsync rview rvim scp sed
    sftp socat sqlite tar uv uvx vi view vim wget yarn zip
    """
)
"""Some of their options run programs: those aren't granted, not even word for word."""


def parse(command: str) -> tuple[str, ...]:
    r"""Return the words of a command line that consists of nothing else.

    >>> parse("git log --format='%h %s' -3")
    ('git', 'log', '--format=%h %s', '-3')
    >>> parse("df -h; id")
    Traceback (most recent call last):
    vigil.errors.InvalidInput: command: has ';' at character 6, which no grant covers

    Raises:
        InvalidInput: there is more to it, naming the first character that says so.
    """
    words: list[str] = []
    at, end = 0, len(command)
    while at < end:
        if command[at] == " ":
            at += 1
            continue
        found = _WORD.match(command, at)
        after = at if found is None else found.end()
        if found is None or (after < end and command[after] != " "):
            raise _refused(command, after)
        words.append(_unquoted(found[0], command, at))
        at = after
    if not words:
        raise InvalidInput("command", "has no program")
    if not _PROGRAM.fullmatch(words[0]):
        raise InvalidInput("command", f"begins with {words[0][:40]!r}, which is no program's name")
    if len(words) > WORDS_MAX:
        raise InvalidInput("command", f"has {len(words)} words; a grant covers {WORDS_MAX}")
    return tuple(words)


def _refused(command: str, at: int) -> InvalidInput:
    return InvalidInput(
        "command", f"has {command[at]!r} at character {at + 1}, which no grant covers"
    )


def _unquoted(word: str, command: str, at: int) -> str:
    for offset, char in enumerate(word):
        if not " " <= char <= "~":
            raise _refused(command, at + offset)
    return "".join("".join(piece) for piece in _PIECE.findall(word))


@lru_cache(maxsize=16)
def _read(command: str) -> tuple[str, ...] | str:
    """Return the words, or why there are none: one call is compared with many grants."""
    try:
        return parse(command)
    except InvalidInput as error:
        return f"the command {error.reason}"


def obstacle(rule: Argv, command: object) -> str | None:
    """Return why a command isn't what the rule allows; None: it is."""
    if not isinstance(command, str):
        return "the command is no text"
    words = _read(command)
    if isinstance(words, str):
        return words
    named = len(rule.argv)
    if words[:named] != rule.argv:
        return "it's another command"
    return _too_much(rule, words[named:])


def _too_much(rule: Argv, rest: tuple[str, ...]) -> str | None:
    """Return why a command may not go on like that; None: it may, or it doesn't go on."""
    if not rest:
        return None
    if rule.more == "nothing":
        return "the command has more arguments"
    if not leaves_open(rule):  # a grant of an older version
        return "the command has more arguments, and its program may do anything with them"
    if rule.more == "operands" and any(map(_may_be_option, rest)):
        return "the command has more options"
    return None


def _may_be_option(word: str) -> bool:
    return not word or word[0] in "-+@"


def check(rule: Argv) -> Argv:
    """Return a rule that may be granted. Raises: InvalidInput, field and reason."""
    if not rule.argv:
        raise InvalidInput("argv", "must name a program")
    if len(rule.argv) > WORDS_MAX:
        raise InvalidInput("argv", f"must have at most {WORDS_MAX} words")
    for word in rule.argv:
        if not all(" " <= char <= "~" for char in word):
            raise InvalidInput("argv", f"has {word[:40]!r}: only printable ASCII can be granted")
    program = rule.argv[0]
    if not _PROGRAM.fullmatch(program):
        raise InvalidInput("argv", f"begins with {program[:40]!r}, which is no program's name")
    _check_program(rule, kind_of(program))
    return rule


def _check_program(rule: Argv, name: str) -> None:
    shown = rule.argv[0][:40]
    if name in LAUNCHERS:
        raise InvalidInput("argv", f"{shown!r} runs whatever its arguments name")
    if name in INTERPRETERS and not _names_file(rule.argv, name):
        raise InvalidInput("argv", f"{shown!r} runs code: name the file, and no option before it")
    if name in WHOLE and any(map(_runs, rule.argv[1:])):
        raise InvalidInput("argv", f"has an option of {shown!r} that runs a program")
    if rule.more == "anything" and len(rule.argv) == 1:
        raise InvalidInput("argv", "must name a first argument, too, if anything may follow")
    if rule.more != "nothing" and not leaves_open(rule):
        raise InvalidInput(
            "more",
            f"must be 'nothing': arguments of {shown!r} might run programs, write or send files. "
            "Only programs that read and print may have more, and files of an interpreter",
        )


_RUNNING: Final = (
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "--to-command",
    "--checkpoint-action",
    "--use-compress-program",
    "--rsh",
    "--rsync-path",
    "SHELL=",
)


def _runs(word: str) -> bool:
    return word.startswith(_RUNNING)


def _names_file(argv: tuple[str, ...], name: str) -> bool:
    arguments = argv[1:]
    if name in ("python", "pypy") and arguments[:1] == ("-m",):
        arguments = arguments[1:]
    return bool(arguments) and bool(arguments[0]) and arguments[0][0] not in "-+"


def kind_of(program: str) -> str:
    """Return what a program is known as, without its folder, its version and its case.

    >>> kind_of("/usr/bin/Python3.11"), kind_of("bash"), kind_of("ld-linux-x86-64.so.2")
    ('python', 'bash', 'ld-linux-x86-64')
    """
    name = program.rpartition("/")[2].lower()
    stems = (name, *(pattern.sub("", name) for pattern in _ENDINGS))
    return next((stem for stem in stems if stem in LAUNCHERS | INTERPRETERS | WHOLE), name)
