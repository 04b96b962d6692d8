"""Words that carry next to no meaning by themselves: closed lists, one for each language. Pure.

Articles, pronouns, prepositions, conjunctions and auxiliaries, by the grammars' own closed classes.
No negation is among them, no word of quantity (all, every, only) and no adverb that turns a
sentence around: who could add those to a person's words could change what they said.
"""

from __future__ import annotations

from typing import Final

_LISTS: Final = {
    "frame": """
        user users person persons reminder remind remember note notes
    """,
    "en": """
        a an the this that these those i me my mine you your yours he him his she her hers it its we
        us our ours they them their theirs who whom whose which what of to in on at by for from with
        into about as than and or if so because when while then there here is are was were be been
        being am do does did have has had will would shall should can could may might must let lets
        please
    """,
    "de": """
        der die das den dem des ein eine einen einem einer eines dieser diese dieses diesen diesem
        ich mich mir mein meine meinen meinem meiner du dich dir dein deine deinen deinem deiner er
        ihn ihm sein seine seinen seinem seiner sie ihr ihre ihren ihrem ihrer es wir uns unser
        unsere euch euer eure man wer wen wem was welche welcher welches von zu zum zur in im ins an
        am auf bei für aus mit nach über um und oder wenn weil dass als wie ob dann da hier ist sind
        war waren sei bin bist hat habe haben hatte wird werden würde kann können soll sollen sollte
        muss müssen darf bitte
    """,
    "fr": """
        le la les un une des du de au aux ce cet cette ces je me moi mon ma mes tu te toi ton ta tes
        il elle lui son sa ses nous notre nos vous votre vos ils elles leur leurs qui que quoi dont
        en dans sur chez par pour avec à et ou si quand comme est sont était être a ont avait sera
        peut doit
    """,
    "es": """
        el la los las un una unos unas este esta estos estas ese esa yo me mi mis tú te tu tus él
        ella su sus nosotros nos nuestro nuestra vosotros ellos ellas que quien cual de del a al en
        por para con y o si cuando como es son era ser está están ha han había será puede debe
    """,
    "it": """
        il lo la i gli le un uno una di del della dei delle a al alla in nel nella su sul da dal con
        per tra io mi me mio mia miei mie tu ti te tuo tua suo sua noi ci nostro voi vi loro che chi
        cui e o se quando come è sono era essere ha hanno aveva sarà può deve
    """,
    "nl": """
        de het een deze dit die dat ik mij me mijn jij je jou jouw hij hem zijn zij haar wij ons
        onze jullie hun wie wat welke van te tot in op aan bij voor uit met naar over om en of als
        omdat dan daar hier is was waren ben bent heeft heb hebben had wordt worden zal zou kan moet
    """,
    "pt": """
        o a os as um uma uns umas este esta esse essa eu me mim meu minha tu te teu tua ele ela seu
        sua nós nos nosso nossa vós eles elas que quem qual de do da dos das em no na nos nas por
        para com e ou se quando como é são era ser está estão tem têm será pode deve
    """,
}

FUNCTION_WORDS: Final = frozenset(word for words in _LISTS.values() for word in words.split())

_NEGATIONS: Final = """
    not no never don't dont doesn't doesnt didn't won't wont can't cannot shouldn't mustn't isn't
    aren't wasn't without except neither nor stop avoid
    nicht kein keine keinen keinem keiner nie niemals ohne außer
    ne pas jamais sans sauf
    nunca jamás sin tampoco
    non mai senza tranne
    niet geen nooit zonder
    não nunca sem
    """
NEGATIONS: Final = frozenset(_NEGATIONS.split())
"""In a sentence with one of these, what is named may be what the person does not want."""

_TURNS: Final = "but instead rather sondern stattdessen mais sino invece maar mas"
TURNS: Final = frozenset(_TURNS.split())
"""After one of these, a negation before it counts no more."""

_RUN: Final = """
    run execute start call do type
    starte führe rufe exécute lance ejecuta corre esegui lancia voer start execute rode
"""
RUN_WORDS: Final = frozenset(_RUN.split())
"""After one of these stands what is to be run."""

_PEOPLE: Final = """
    will can may mai sera mark bill grace hope faith joy art rich frank pat rob sue drew chase grant
    guy jack june april august rose lily dawn page dean miles star summer autumn christian earnest
    baker cook long short day white green black brown young king price best wood stone field hill
    banks rice fish small little good law case wolf klein gross lang kurz jung weiß schwarz
    """
COMMON_NAMES: Final = frozenset(_PEOPLE.split())
"""Names of people that are common words, too."""

_CALENDAR: Final = """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december
    """
DAYS_AND_MONTHS: Final = frozenset(_CALENDAR.split())
"""In English, without case: they stand wherever there is a date."""
