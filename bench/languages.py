"""Memories in several languages, and questions that have their words in another form.

Declension, conjugation, plural, capitals, accents left out: what somebody writes who asks. All
memories of a language are in one memory, so what they have in common is the language. In those
without spaces there are others, of the same letters: nothing says there where a word ends.
"""

from __future__ import annotations

import random
from typing import Final

OTHERS: Final = 300
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
        ("医者から白い錠剤を処方された", "医者は何を処方したの"),
        ("健太は田中先生にバイオリンを習っている", "バイオリンの先生は誰"),
        ("隣の人は屋根で蜂を飼っている", "蜂を飼う人は誰"),
        ("夏に電車でウィーンへ行く予定だ", "ウィーンまでどうやって行くの"),
        ("暗証番号は赤いノートに書いてある", "暗証番号をどこに書いた"),
        ("金曜日に職人が窓を直しに来る", "窓はいつ直る"),
        ("父はフィンランドの切手を集めている", "父が集めた切手はどこの国のもの"),
        ("姉は東京都の病院で看護師をしている", "看護師の姉はどこの病院"),
        ("従兄は京都の大学で生物学を研究している", "大学での研究は何"),
        ("母はピーナッツにアレルギーがある", "母のアレルギーは何"),
        ("保険料は毎年一月に払う", "保険はいつ払った"),
        ("地下室に古い自転車が六台ある", "自転車は何台"),
        ("パスポートは旅行会社に預けた", "パスポートを誰に預けたか"),
        ("結婚記念日は五月十二日だ", "記念日はいつ"),
        ("上の階の学生が毎晩ピアノを弾く", "ピアノを弾いているのは誰"),
        ("上司が来月の休暇を認めてくれた", "休暇は認められたか"),
        ("船の名前はマリーゴールドで三番桟橋にある", "船はどの桟橋"),
        ("リナはきのことオリーブが嫌いだ", "リナの嫌いなものは"),
        ("卓球のラケットは車庫の棚にしまった", "ラケットをしまった棚はどこ"),
        ("獣医の佐藤先生は木曜日が休みだ", "獣医が休むのはいつ"),
    ),
    "zh": (
        ("我们从收容所领养了两只猫", "猫是从哪里来的"),
        ("钥匙放在花盆下面", "钥匙在哪里"),
        ("奶奶在湖边出租三套房子", "奶奶的房子在哪里"),
        ("弟弟在面包店工作", "弟弟在哪里上班"),
        ("医生给我开了白色的药片", "药片是哪位医生开的"),
        ("小明跟王老师学小提琴", "小提琴是谁教的"),
        ("邻居在屋顶上养蜜蜂", "哪个邻居养了蜂"),
        ("丽娜不吃蘑菇和橄榄", "丽娜有什么不吃"),
        ("夏天我们坐火车去维也纳", "我们怎么去维也纳"),
        ("密码写在红色的本子里", "密码记在哪个本子"),
        ("星期五工人来换窗户", "窗户什么时候换"),
        ("爸爸收集芬兰的邮票", "爸爸的邮票来自哪个国家"),
        ("南京市长江大桥附近有家茶馆", "长江大桥旁边有什么"),
        ("姐姐正在读生物学研究生", "研究生读的是什么专业"),
        ("乒乓球拍放在车库的柜子里", "球拍在哪个柜子"),
        ("船名叫金盏花，停在三号码头", "船停在哪个码头"),
        ("妈妈对花生过敏", "妈妈过敏的是什么"),
        ("保险费每年一月付", "保险什么时候付"),
        ("地下室里还有六辆旧自行车", "自行车有几辆"),
        ("表妹在上海的医院当护士", "护士在哪家医院"),
        ("我把护照交给了旅行社", "护照在谁那里"),
        ("结婚纪念日是五月十二号", "纪念日是哪天"),
        ("楼上的学生每天晚上弹钢琴", "谁在弹钢琴"),
        ("老板同意我下个月休假", "休假是什么时候"),
    ),
}

_OTHERS: Final[dict[str, tuple[str, ...]]] = {
    "zh": (
        "{}{}在{}{}",
        "弟弟 哥哥 姐姐 表哥 阿姨 叔叔 老师 同事 小红 丽丽 奶牛场主 医学生 邻座的人 爸爸 妈妈",
        "昨天 上周 星期三 早上 去年 春天 一月底 夏天",
        "公园 学校 花店 图书馆 湖南 医学院 面馆 火车站 屋后 码头工地 上海 南京 车库 "
        "地下铁 茶楼 医院 邮局",
        "买了红色的本子 修理自行车 画了一只老虎 弹吉他 寄了一封信 学跳舞 吃花生糖 "
        "遇见工人 丢了钱包 打开保险柜 看蜜蜂的电影 换了新工作 找钥匙链 收集树叶 "
        "开了白色的车 读小提琴家的传记 喂猫头鹰 休息了一下 谈研究生活 拍卖旧家具 养金鱼 "
        "写下密码学笔记 擦窗台 领养老金 搭船 等护理员",
    ),
    "ja": (
        "{}は{}{}で{}",
        "弟子 兄 姉妹 従姉 叔母 叔父 先生 同僚 健一 里奈 隣町の人 医学生 父親 母親 上級生",
        "昨日 先週 水曜日に 朝 去年 春に 一月末に 夏休みに",
        "公園 学校 花屋 図書館 湖畔の宿 医学部 中華料理屋 電車の駅 屋根裏 "
        "桟橋の工事現場 東京 京都 車庫 地下鉄 喫茶店 病院 郵便局",
        "赤い鉛筆を買った 自転車を直した 虎の絵を描いた ギターを弾いた 手紙を送った "
        "踊りを習った ピーナッツ菓子を食べた 職人に会った 財布をなくした 保険証を見せた "
        "蜂蜜を買った 新しい仕事を始めた 鍵盤を叩いた 木の葉を集めた 白い車に乗った "
        "バイオリニストの伝記を読んだ 猫背を直した 少し休んだ 研究生活を語った "
        "古い家具を売った 金魚を飼った 暗号の本を書いた 窓口に並んだ 年金を受け取った "
        "船酔いした 看護を学んだ 切符を集めた 記念写真を撮った",
    ),
}
"""Of languages without spaces: how other memories are made, and of what, in this order."""


def others(language: str) -> list[str]:
    """Return memories that answer no question of `PAIRS`, but have many of the same letters."""
    if language not in _OTHERS:
        return []
    form, *parts = _OTHERS[language]
    dice = random.Random(5)
    made = (form.format(*(dice.choice(part.split()) for part in parts)) for _ in range(OTHERS))
    return list(dict.fromkeys(made))
