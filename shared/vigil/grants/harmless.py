"""Programs of which more may be granted than a command word for word.

Nobody can list whatever runs, writes or sends what its arguments name: there is always one more
launcher. So a grant leaves arguments open only for programs that are known to read and print,
wherever those lead; of all others it covers exactly the words that the person saw. Pure.
"""

from __future__ import annotations

from typing import Final

from ..contracts.board.grant import Argv


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


READING: Final = _words(
    """
    b2sum basename cat cksum cmp comm cut df dirname du echo grep groups head id ls md5sum nl od
    readlink realpath sha1sum sha224sum sha256sum sha384sum sha512sum stat sum tail wc
    """
)
"""They read and print, with whatever options."""
READING_PLAINLY: Final = _words(
    """
    diff egrep expand fgrep file fold join paste pr rev seq sort strings tac tree tsort unexpand
    """
)
"""So do these without options: some of theirs write a file, or run a program."""
SCRIPTED: Final = _words("bash dash ksh lua node perl php pypy pypy3 python python3 ruby sh zsh")
"""They hand what follows a file on to it: who granted the file knows what it does with that."""
FOLDERS: Final = ("", "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/")
"""Where such a program is that program; elsewhere an agent may have put another one."""


def leaves_open(rule: Argv) -> bool:
    """Whether a grant of that command may leave open what follows.

    >>> leaves_open(Argv(argv=("df", "-h"), more="operands"))
    True
    >>> leaves_open(Argv(argv=("sort", "-o"), more="operands"))
    False
    >>> leaves_open(Argv(argv=("./df",), more="operands"))
    False
    """
    folder, slash, name = rule.argv[0].rpartition("/")
    if folder + slash not in FOLDERS:
        return False
    named = rule.argv[1:]
    if name in READING:
        return True
    if name in READING_PLAINLY:
        return rule.more == "operands" and not any(word[:1] in ("-", "+") for word in named)
    return name in SCRIPTED and bool(named) and _is_file(named[0])


def _is_file(word: str) -> bool:
    """Whether a word can only be a file: `inspect` and `run` are commands of some interpreters."""
    return word[:1] not in ("-", "+", "@", "") and ("." in word or "/" in word)
