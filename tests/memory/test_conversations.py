"""The conversations that retrieval is measured on: from a seed alone, and honestly apart (M-10)."""

from __future__ import annotations

import re
from collections import Counter

from bench import identifiers, links, topics, topics_held_out
from bench.conversations import FAMILIES, build


def test_a_seed_gives_the_same_conversation() -> None:
    assert build(3, "tuning", sessions=4) == build(3, "tuning", sessions=4)
    assert build(3, "tuning", sessions=4) != build(4, "tuning", sessions=4)


def test_every_question_has_its_evidence_among_the_turns() -> None:
    """M-10: labelled evidence, single and several turns, temporal and similar ones."""
    talk = build(1, "held_out")
    assert [turn.number for turn in talk.turns] == list(range(len(talk.turns)))
    assert all(a.at <= b.at for a, b in zip(talk.turns, talk.turns[1:], strict=False))
    kinds = Counter(question.kind for question in talk.questions)
    assert min(kinds["multi"], kinds["temporal"], kinds["similar"]) > 0
    for question in talk.questions:
        assert question.evidence
        assert set(question.evidence) <= set(range(len(talk.turns)))
        assert "{" not in question.text
    assert not any("{" in turn.text for turn in talk.turns)


def test_no_phrase_is_in_both_families() -> None:
    """M-10: weights are chosen on one family and judged on the other."""

    def phrases(family: tuple[topics.Topic, ...]) -> set[str]:
        return {
            phrase
            for topic in family
            for phrase in (*topic.told, *topic.answered, *topic.when, *topic.gathered)
        }

    assert not phrases(topics.TOPICS) & phrases(topics_held_out.TOPICS)
    assert not set(topics.SMALL_TALK) & set(topics_held_out.SMALL_TALK)


def test_a_name_of_its_own_stands_in_one_turn() -> None:
    """M-10: and its question names it."""
    named = identifiers.build(3)
    assert named == identifiers.build(3)
    for one in named:
        names = {word for word in one.question.rstrip("?").split() if any(map(str.isdigit, word))}
        assert names
        others = [other.turn.text for other in named if other is not one]
        assert all(name in one.turn.text for name in names)
        assert not any(all(name in text for name in names) for text in others)


def test_a_name_leads_from_one_turn_to_another() -> None:
    """M-10: both turns that answer a question have a name, which the question hasn't."""
    for family in FAMILIES:
        linked = links.build(3, family)
        assert linked == links.build(3, family)
        for question in linked.questions:
            one, other = (
                set(re.findall(r"\w+", linked.turns[at].text)) for at in question.evidence
            )
            shared = (one & other) - set(re.findall(r"\w+", question.text))
            assert any(word.istitle() for word in shared - set(links.SPEAKERS)), question
