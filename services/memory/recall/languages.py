"""Stems of words in other languages than English, for what is asked. Pure.

Full text stores words as they are written, but for English endings (``porter``). So a question in
another language is searched by the beginnings of words, too: of `Katze` it's `katz`, with which
`Katzen` and `Katzenfutter` begin. What is stored needn't know its language, and nothing has to be
made anew. (Stems: Snowball, https://snowballstem.org.)

Which language it is, its small words tell; they are left out then, as English ones are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Final

STEM_LENGTH_MIN: Final = 4
"""Letters; with fewer begin too many words."""
_SMALL: Final = {
    "german": """
        aber als am an auch auf aus bei bin bis das dass dem den der des die du ein eine einem
        einen einer er es für hat habe haben hatte ich ihr im in ist ja kann kein keine mein
        meine mir mich mit nach nicht noch oder seit sich sie sind so über um und uns unser
        unsere von vom war waren warum was welche welchem welchen welcher welches wem wen wann
        wer wie wir wird wo woher zu zum zur
    """,
    "dutch": """
        aan als bij dat de die dit een en er haar had heb hebben hebt heeft het hij hoe ik in is
        je kan maar met mij mijn naar niet nog of om onder ons onze op te toen uit van vandaan
        voor waar waarom wanneer wat we welk welke werd wie wij zijn zij
    """,
    "french": """
        à a ai as au aux avec avons ce cette chez comment dans de des du elle en est et été eu
        fait il ils je la le les leur leurs lui ma mais mes moi mon ne nos notre nous on ont où
        ou par pas pour pourquoi qu quand que quel quelle quelles quels qui sa se ses si son
        sont sur ta te tes ton tu un une vos votre vous y l d j t s c n m
    """,
    "spanish": """
        a al como cómo con cuál cuándo cuando de del desde dónde donde el ella ellos en entre
        era es esta está están este fue ha han hay la las le les lo los me mi mis más muy no nos
        nuestra nuestro o para pero por porque qué que quién quien se sin sobre su sus te tiene
        tu tus un una unas unos y ya
    """,
    "portuguese": """
        a ao aos as com como da das de do dos e ela ele eles em entre era es esta está foi há
        isso já mais mas me meu meus minha minhas muito na não nas no nos o onde os para pela
        pelo por porque qual quando que quem se sem seu seus sua suas são tem teu tu um uma você
    """,
    "italian": """
        a ai al alla alle anche che chi ci come con cosa da dal dalla dei del della delle di
        dove e è ed era gli ha hai hanno ho i il in io la le lei lo loro lui ma mi mia mie mio
        nel nella non o per perché più quale quali quando quanto se si sono su sua sue sul suo
        tra tu un una uno l
    """,
    "swedish": """
        att av de den det din du efter ej en ett för från då gör ha han har hon hur här i ifrån
        inte jag kan kom man med men mig min mina mot när nej och om oss på ska sin som så till
        under upp ut vad var varför vem vi vid vilka vilken vilket vår är
    """,
    "danish": """
        af alle at blev da de dem den der deres det dig din du efter eller en er et for fra ham
        han har havde hende her hun hvad hvem hvilken hvilket hvor hvordan hvornår hvorfor i
        ikke jeg kan man med mig min mit når og også om op os på sig sin som til ud under var vi
        vil være
    """,
    "norwegian": """
        av da de deg den der deres det din du dere eller en er et etter for fra ham han har hun
        hva hvem hvilken hvilket hvor hvordan hvorfor i ikke jeg kan man med meg min mitt når og
        også om opp oss på seg sin som til under ut var vi være
    """,
    "russian": """
        а без бы был была были было в вам вас во все вот вы где да для до его ее её если есть
        еще ещё же за и из или им их к как какая какие каким какого какой какую когда которая
        который кто куда ли мне мой мы на над нас не него нет ни но о об он она они от откуда по
        под почему при с со так там то тоже ты у уже чей чем что чтобы эта это этот я
    """,
}
SMALL_WORDS: Final = {name: frozenset(words.split()) for name, words in _SMALL.items()}


@functools.cache
def _stemmer(language: str) -> Callable[[str], str]:
    # It loads the stems of all its languages: a tenth of a second and 5 MB, once somebody asks.
    import snowballstemmer  # type: ignore[import-untyped]

    found: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord
    return found


def language_of(words: Iterable[str], english: frozenset[str]) -> str:
    """Return the language that most of the small words are of; empty: English, or nobody knows.

    >>> language_of("wie heißt die katze von anna".split(), frozenset(["die"]))
    'german'
    >>> language_of("what is in the box".split(), frozenset(["what", "is", "in", "the"]))
    ''
    """
    some = set(words)
    counts = {name: len(some & small) for name, small in SMALL_WORDS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] > len(some & english) else ""


def small_words(words: Iterable[str], language: str) -> frozenset[str]:
    """Return which words say nothing by themselves. A single one may be a name: `Mia`, `Son`.

    >>> small_words(["mia", "kiln"], "italian")
    frozenset()
    """
    found = SMALL_WORDS[language].intersection(words)
    return found if len(found) > 1 or not "".join(found).isascii() else frozenset()


def stem(word: str, language: str) -> str:
    """Return the beginning that forms of a word have in common; empty: it's too short to tell.

    >>> stem("katzen", "german"), stem("кошку", "russian"), stem("bee", "english")
    ('katz', 'кошк', '')
    """
    found = _stemmer(language)(word)
    return found if len(found) >= STEM_LENGTH_MIN else ""
