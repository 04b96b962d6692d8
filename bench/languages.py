"""Memories in several languages, and questions that have their words in another form.

Declension, conjugation, plural, capitals, accents left out: what somebody writes who asks. All
memories of a language are in one memory, so what they have in common is the language.
"""

from __future__ import annotations

from typing import Final

Pair = tuple[str, str]
"""A memory, and a question that it answers."""

PAIRS: Final[dict[str, tuple[Pair, ...]]] = {
    "de": (
        ("Wir haben zwei Katzen aus dem Tierheim geholt", "Woher kommt unsere Katze?"),
        ("Anna bezahlt die Versicherungen immer im Januar", "Wann wird die Versicherung bezahlt?"),
        ("Der Schlüssel liegt unter den Blumentöpfen", "Unter welchem Blumentopf ist er?"),
        ("Oma hat drei Häuser am See vermietet", "Wo steht das Haus von Oma?"),
        ("Im Keller stehen noch sechs alte Fahrräder", "Was ist mit dem Fahrrad im Keller?"),
        ("Jonas lernt seit Mai Geige bei Frau Weiß", "Bei wem hat Jonas Geigen gelernt?"),
        ("Die Ärztin hat mir Tabletten verschrieben", "Welche Tablette war von der Aerztin?"),
        ("Wir fahren im Sommer mit den Zügen nach Wien", "Mit welchem Zug fahren wir?"),
        ("Mein Bruder arbeitet in einer Bäckerei", "Wo haben die Brüder gearbeitet?"),
        ("Lena mag keine Pilze und keine Oliven", "Isst Lena einen Pilz?"),
        ("Das Passwort steht im roten Heft", "Wo stehen die Passwörter?"),
        (
            "Am Freitag kommen die Handwerker wegen der Fenster",
            "Welcher Handwerker hat das Fenster?",
        ),
        ("Unsere Nachbarin züchtet Bienen auf dem Dach", "Wer hat eine Biene?"),
        ("Paul sammelt Briefmarken aus Finnland", "Welche Briefmarke hat Paul?"),
    ),
    "fr": (
        ("Nous avons adopté deux chats au refuge", "D'où vient notre chat ?"),
        ("Les clés sont cachées sous les pots de fleurs", "Où est cachée la clé ?"),
        ("Mamie loue trois maisons au bord du lac", "Que fait mamie de sa maison ?"),
        ("Julien apprend le violon chez madame Roux", "Chez qui Julien a-t-il appris le violon ?"),
        (
            "Le médecin a prescrit des comprimés blancs",
            "Quel comprime le medecin a-t-il prescrit ?",
        ),
        ("Les voisines élèvent des abeilles sur le toit", "Quelle voisine a une abeille ?"),
        ("Léa n'aime ni les champignons ni les olives", "Est-ce que Lea mange un champignon ?"),
        ("Mon frère travaille dans une boulangerie", "Où travaillaient mes frères ?"),
        ("Paul collectionne des timbres finlandais", "Quel timbre est dans la collection ?"),
        ("Nous voyagerons en train jusqu'à Vienne", "Comment avons-nous voyagé ?"),
    ),
    "es": (
        ("Adoptamos dos gatos en el refugio", "¿De dónde es el gato que adoptaste?"),
        ("Las llaves están escondidas debajo de las macetas", "¿Dónde está escondida la llave?"),
        ("La abuela alquila tres casas junto al lago", "¿Qué hace la abuela con su casa?"),
        ("Julián aprende violín con la señora Ruiz", "¿Con quién aprendió Julian los violines?"),
        ("El médico me recetó unas pastillas blancas", "¿Qué pastilla recetaron los medicos?"),
        ("Los vecinos crían abejas en el tejado", "¿Qué vecino tiene una abeja?"),
        ("A Lea no le gustan las aceitunas ni las setas", "¿Le gusta a Lea la aceituna?"),
        ("Mi hermano trabaja en una panadería", "¿Dónde trabajaban mis hermanos?"),
        ("Pablo colecciona sellos de Finlandia", "¿Qué sello está en la colección?"),
        ("Viajaremos a Viena en tren", "¿Cómo viajamos?"),
    ),
    "ru": (
        ("Мы взяли двух кошек из приюта", "Откуда у нас кошка?"),
        ("Ключи лежат под цветочными горшками", "Под каким горшком ключ?"),
        ("Бабушка сдаёт три дома у озера", "Где дом бабушки?"),
        ("Юля учится играть на скрипке у Анны Павловны", "Кто учил Юлю скрипке?"),
        ("Врач выписал мне белые таблетки", "Какую таблетку выписали врачи?"),
        ("Соседи держат пчёл на крыше", "У какого соседа пчёлы?"),
        ("Лена не любит грибы и оливки", "Ест ли Лена гриб?"),
        ("Мой брат работает в пекарне", "Где работали братья?"),
        ("Павел собирает финские марки", "Какая марка есть у Павла?"),
        ("Летом мы едем в Вену на поезде", "Каким поездом мы поедем?"),
    ),
    "nl": (
        ("We hebben twee katten uit het asiel gehaald", "Waar komt onze kat vandaan?"),
        ("De sleutels liggen onder de bloempotten", "Onder welke bloempot ligt de sleutel?"),
        ("Oma verhuurt drie huizen aan het meer", "Wat doet oma met haar huis?"),
        ("Joris leert vioolspelen bij mevrouw Bakker", "Bij wie heeft Joris viool geleerd?"),
        ("De dokter heeft witte tabletten voorgeschreven", "Welke tablet komt van de dokters?"),
        ("De buren houden bijen op het dak", "Welke buurman heeft een bij?"),
        ("Lena lust geen olijven en geen paddenstoelen", "Eet Lena een olijf?"),
        ("Mijn broer werkt in een bakkerij", "Waar werkten mijn broers?"),
    ),
    "it": (
        ("Abbiamo adottato due gatti al rifugio", "Da dove viene il gatto?"),
        ("Le chiavi sono nascoste sotto i vasi", "Dove è nascosta la chiave?"),
        ("La nonna affitta tre case sul lago", "Cosa fa la nonna con la casa?"),
        ("Giulio impara il violino dalla signora Russo", "Da chi ha imparato Giulio?"),
        ("Il medico mi ha prescritto pastiglie bianche", "Quale pastiglia prescrivono i medici?"),
        ("I vicini allevano api sul tetto", "Quale vicino ha le api?"),
        ("A Lea non piacciono le olive", "A Lea piace l'oliva?"),
        ("Mio fratello lavora in una panetteria", "Dove lavoravano i fratelli?"),
    ),
    "pt": (
        ("Adotamos dois gatos no abrigo", "De onde veio o gato?"),
        ("As chaves estão escondidas debaixo dos vasos", "Onde está escondida a chave?"),
        ("A avó aluga três casas junto ao lago", "O que faz a avó com a casa?"),
        ("O médico receitou comprimidos brancos", "Que comprimido receitaram os medicos?"),
        ("Os vizinhos criam abelhas no telhado", "Que vizinho tem uma abelha?"),
        ("Meu irmão trabalha numa padaria", "Onde trabalhavam os irmãos?"),
        ("Paulo coleciona selos da Finlândia", "Que selo tem Paulo?"),
    ),
    "sv": (
        ("Vi hämtade två katter från djurhemmet", "Var kom katten ifrån?"),
        ("Nycklarna ligger under blomkrukorna", "Under vilken blomkruka ligger nyckeln?"),
        ("Mormor hyr ut tre hus vid sjön", "Vad gör mormor med husen?"),
        ("Läkaren skrev ut vita tabletter", "Vilken tablett kom från läkarna?"),
        ("Grannarna har bin på taket", "Vilken granne har ett bi?"),
        ("Min bror arbetar på ett bageri", "Var arbetade bröderna?"),
        ("Pelle samlar finska frimärken", "Vilket frimärke har Pelle?"),
    ),
    "ja": (
        ("二匹の猫を保護施設から引き取った", "猫はどこから来たの"),
        ("鍵は植木鉢の下に置いてある", "植木鉢の下に何がある"),
        ("祖母は湖のそばに家を三軒持っている", "祖母の家はどこ"),
        ("弟はパン屋で働いている", "弟の仕事は"),
    ),
    "zh": (
        ("我们从收容所领养了两只猫", "猫是从哪里来的"),
        ("钥匙放在花盆下面", "钥匙在哪里"),
        ("奶奶在湖边出租三套房子", "奶奶的房子在哪里"),
        ("弟弟在面包店工作", "弟弟在哪里上班"),
    ),
}
