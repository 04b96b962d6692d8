"""English beyond plain words: those that carry no topic, and forms that no stemmer knows. Pure.

Texts in other languages pass through untouched. The stemmer of FTS5 does the regular endings.
"""

from __future__ import annotations

from typing import Final

STOP_WORDS: Final = frozenset(
    """
    a about again all also am an and any anyone anything are aren as at be been being both but by
    can could couldn d did didn do does doesn doing don done else ever for from get gets getting got
    had hadn has hasn have haven having he her hers herself him himself his how i if in into is isn
    it its itself just ll m may me might mine more most much must my myself no nor not of on once
    one only or other our ours ourselves out over own please re s shall she should shouldn so some
    such t tell than that the their theirs them themselves then there these they this those to too
    up us ve very was wasn we were weren what when where which while who whom whose why will with
    won would wouldn yes you your yours yourself
    """.split()  # noqa: SIM905 - to be read as words
)
"""Left out of a search, unless there is nothing else in it."""

_FORMS: Final = """
arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|begin began begun
bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred
bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|cling clung
come came|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk
drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found
flee fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven
freeze froze frozen|give gave given|go went gone|grow grew grown|hang hung|hear heard
hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|lean leant
leap leapt|learn learnt|leave left|lend lent|lose lost|make made|mean meant|meet met
mistake mistook mistaken|overcome overcame|pay paid|prove proven|ride rode ridden|ring rang rung
rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|send sent|sew sewn
shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung
sink sank sunk|sit sat|sleep slept|slide slid|smell smelt|sow sown|speak spoke spoken|spell spelt
spend spent|spill spilt|spin spun|spring sprang sprung|stand stood|steal stole stolen|stick stuck
sting stung|strike struck stricken|strive strove striven|swear swore sworn|sweep swept
swim swam swum|swing swung|take took taken|teach taught|tear tore torn|think thought
throw threw thrown|understand understood|undergo underwent undergone|wake woke woken|wear wore worn
weave wove woven|weep wept|win won|withdraw withdrew withdrawn|write wrote written
child children|foot feet|goose geese|knife knives|leaf leaves|life lives|loaf loaves|man men
mouse mice|person people|shelf shelves|thief thieves|tooth teeth|wife wives|wolf wolves|woman women
"""

IRREGULAR: Final = {
    form: forms[0]
    for line in _FORMS.strip().splitlines()
    for forms in map(str.split, line.split("|"))
    for form in forms[1:]
}
"""Form -> base: a question says "did she buy" where the answer says "I bought"."""

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sep", "sept"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}
