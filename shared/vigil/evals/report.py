"""What came of a run of stories, for programs and in the XML that build servers read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec

from .judged import MICRO
from .play import Played


class StoryResult(msgspec.Struct, frozen=True, kw_only=True):
    """A story with each time that it was played."""

    story: str
    theme: str
    times: tuple[Played, ...]
    least: int
    """How often it must hold."""

    @property
    def held(self) -> int:
        """How often it held."""
        return sum(one.held for one in self.times)

    @property
    def is_well(self) -> bool:
        return self.held >= self.least

    @property
    def is_broken(self) -> bool:
        """Whether it was never played to its end."""
        return all(one.broken for one in self.times)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What didn't hold, each once, in the order in which it was found."""
        return tuple(dict.fromkeys(line for one in self.times for line in one.reasons()))


def result_of(played: Sequence[Played], least: int) -> StoryResult:
    first = played[0]
    return StoryResult(story=first.story, theme=first.theme, times=tuple(played), least=least)


def usd(results: Iterable[StoryResult]) -> float | None:
    """Return what all of it cost; None: a model without a price was asked."""
    costs = [one.micro_usd for result in results for one in result.times]
    if None in costs:
        return None
    return sum(cost for cost in costs if cost is not None) / MICRO


def facts(results: Sequence[StoryResult], model: str) -> dict[str, Any]:
    """Return all of it for a program."""
    return {
        "model": model,
        "stories": len(results),
        "well": sum(one.is_well for one in results),
        "usd": usd(results),
        "results": [
            {
                "story": one.story,
                "theme": one.theme,
                "is_well": one.is_well,
                "held": one.held,
                "times": len(one.times),
                "reasons": one.reasons,
                "played": [msgspec.to_builtins(played) for played in one.times],
            }
            for one in results
        ],
    }


def junit(results: Sequence[StoryResult], model: str) -> bytes:
    """Return it in the form that build servers read: a suite for each theme."""
    root = ElementTree.Element("testsuites", name="vigil eval")
    for theme in dict.fromkeys(one.theme for one in results):
        of_theme = [one for one in results if one.theme == theme]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=theme,
            tests=str(len(of_theme)),
            failures=str(sum(not one.is_well and not one.is_broken for one in of_theme)),
            errors=str(sum(not one.is_well and one.is_broken for one in of_theme)),
            time=f"{sum(_took_s(one) for one in of_theme):.3f}",
        )
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(properties, "property", name="model", value=model)
        for one in of_theme:
            case = ElementTree.SubElement(
                suite, "testcase", classname=theme, name=one.story, time=f"{_took_s(one):.3f}"
            )
            if not one.is_well:
                kind = "error" if one.is_broken else "failure"
                message = f"held {one.held} of {len(one.times)} times"
                ElementTree.SubElement(case, kind, message=message).text = _legal(
                    "\n".join(one.reasons)
                )
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _took_s(one: StoryResult) -> float:
    return sum(played.took_s for played in one.times)


def _legal(text: str) -> str:
    """Return a text without the characters that XML has no place for.

    >>> _legal("a\\x1b[8mb\\n")
    'a[8mb\\n'
    """
    return "".join(one for one in text if one in "\t\n\r" or _is_legal(one))


def _is_legal(one: str) -> bool:
    return one >= " " and one not in "\ufffe\uffff" and not "\ud800" <= one <= "\udfff"
