"""Turns that a question leads to by way of another one.

Who somebody's cousin is stands in one conversation, and what that cousin does in another, by name
alone. Facts of the same kinds are told of others, too, so nothing but the name tells whose one is.
The families share no phrase, as those of `bench.conversations`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from bench.conversations import FIRST_DAY, Family, Question, Turn

SPEAKERS: Final = ("Nora", "Felix")
FACTS: Final = 3
"""Of each person, of the kinds that there are."""
A_THREAD: Final = 6


class _Kind(NamedTuple):
    """Something that is said of a person by name, and asked by who that is."""

    said: str
    asked: str
    values: str
    """Separated by commas, as below."""


class _Phrases(NamedTuple):
    met: tuple[str, ...]
    who: str
    names: str
    kinds: tuple[_Kind, ...]


_FAMILIES: Final[dict[Family, _Phrases]] = {
    "tuning": _Phrases(
        met=(
            "my {who} {name} stayed with us over the weekend",
            "{name}, that's my {who}, sends regards",
            "I had a long call with {name}, my {who}",
        ),
        who="cousin,landlord,dentist,boss,niece,piano teacher,uncle,accountant",
        names="Tilda,Bram,Ottilie,Cedric,Mireille,Anselm,Freya,Lorcan,Saskia,Quentin,Imke,Rufus,"
        "Delphine,Casper,Noemi,Barnaby",
        kinds=(
            _Kind(
                "{name} plays the {value} in a small band",
                "Which instrument does {x}'s {who} play?",
                "cello,oboe,banjo,trombone,harp",
            ),
            _Kind(
                "{name} moved to {value} for good",
                "Which town did {x}'s {who} move to?",
                "Ghent,Trieste,Galway,Tromsø,Basel",
            ),
            _Kind(
                "{name} can't eat {value} any more",
                "What food does {x}'s {who} have to avoid?",
                "shellfish,walnuts,wheat,cheese,celery",
            ),
            _Kind(
                "{name} keeps {value} behind the house",
                "Which animals does {x}'s {who} have?",
                "geese,two llamas,carp,pigeons,a pony",
            ),
            _Kind(
                "the doctors found a problem with {name}'s {value}",
                "Which part of the body troubles {x}'s {who}?",
                "thyroid,left ear,shoulder,ankle,retina",
            ),
        ),
    ),
    "held_out": _Phrases(
        met=(
            "my {who} is called {name}, by the way",
            "do you remember {name}? That is the {who} I told you about",
            "{name} is a good {who}, I couldn't ask for a better one",
        ),
        who="sister-in-law,plumber,godfather,flatmate,lawyer,trainer,grandson,florist",
        names="Ludmila,Percival,Xenia,Thaddeus,Romy,Absalom,Zelda,Winston,Marit,Gideon,Philippa,"
        "Osric,Calla,Leopold,Briony,Jasper",
        kinds=(
            _Kind(
                "{name} drives {value} now, and loves it",
                "What kind of vehicle does {x}'s {who} use?",
                "a milk float,a sidecar,an old hearse,a camper,a rickshaw",
            ),
            _Kind(
                "{name} is studying {value} at night",
                "Which subject does {x}'s {who} learn?",
                "astronomy,Basque,upholstery,tax law,botany",
            ),
            _Kind(
                "{name} fell in love with a {value}",
                "What does the partner of {x}'s {who} do for a living?",
                "beekeeper,tram driver,glazier,midwife,cartographer",
            ),
            _Kind(
                "{name} collects {value} from all over",
                "What does {x}'s {who} gather as a hobby?",
                "thimbles,beer mats,typewriters,fossils,doorknobs",
            ),
            _Kind(
                "{name} is scared of {value}",
                "Which fear does {x}'s {who} have?",
                "lifts,moths,bridges,balloons,thunder",
            ),
        ),
    ),
}


class Linked(NamedTuple):
    """Turns, and questions whose evidence is two of them."""

    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def build(seed: int, family: Family) -> Linked:
    """Build the turns of a seed, in an order in which what belongs together stands apart."""
    dice = random.Random(f"links/{family}/{seed}")
    phrases = _FAMILIES[family]
    names = phrases.names.split(",")
    dice.shuffle(names)
    said: list[tuple[str, str]] = []
    asked: list[tuple[str, tuple[int, int]]] = []
    for x, who in itertools.product(SPEAKERS, phrases.who.split(",")):
        name, met = names.pop(), len(said)
        said.append((x, dice.choice(phrases.met).format(who=who, name=name)))
        for kind in dice.sample(phrases.kinds, FACTS):
            asked.append((kind.asked.format(x=x, who=who), (met, len(said))))
            text = kind.said.format(name=name, value=dice.choice(kind.values.split(",")))
            said.append((dice.choice(SPEAKERS), text))
    order = dice.sample(range(len(said)), len(said))
    place = {at: number for number, at in enumerate(order)}
    turns = tuple(_turns([said[at] for at in order], dice))
    return Linked(turns, tuple(_question(text, [place[at] for at in both]) for text, both in asked))


def _question(text: str, evidence: Sequence[int]) -> Question:
    return Question("multi", text, tuple(sorted(evidence)))


def _turns(said: Sequence[tuple[str, str]], dice: random.Random) -> Iterator[Turn]:
    at = FIRST_DAY
    for number, (who, text) in enumerate(said):
        thread = f"linked-{number // A_THREAD}"
        yield Turn(number, thread, at, f"{who}: {text[:1].upper()}{text[1:]}")
        at += timedelta(hours=dice.randint(1, 60))
