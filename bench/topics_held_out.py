"""The other family of topics and phrases, which figures are reported on.

Weights were chosen on the first family, on other seeds; but this one was seen while they were, and
some limits (pools, spreading) were set on both. So it is held out, not blind.

See `bench.topics`. No phrase, value or kind of event stands in both.
"""

# ruff: noqa: E501 - sentences
from __future__ import annotations

from bench.topics import Detail, Topic

TOPICS = (
    Topic(
        "{destination}",
        {
            "destination": "Kyoto,Marrakesh,the fjords,Buenos Aires,Edinburgh,Sicily",
            "highlight": "the night market,a cooking workshop,the old synagogue,a boat to a seal colony,"
            "the rooftop concert",
            "mishap": "they lost our luggage/suitcases,I got food "
            "poisoning/stomach,our train was cancelled/transport,someone took my wallet/theft",
            "with_whom": "my stepdad,two friends from college,the choir,just me, myself and I",
        },
        (
            "We got back from {destination} {ago}, what a trip",
            "I crossed {destination} off my bucket list {ago}",
            "{ago} I flew to {destination}, a spontaneous thing",
        ),
        (
            "Was it as pretty as people say?",
            "{destination} has been on my mind for years! Best part?",
            "I could use a break like that.",
        ),
        ("{x} travel to {destination}", "{x} visit {destination}"),
        ("What places has {x} flown to?", "Which destinations did {x} go to on vacation?"),
        (
            Detail(
                ("The part I keep replaying is {highlight}", "Nothing beat {highlight}"),
                (
                    "What did {x} like most in {destination}?",
                    "Which experience in {destination} stood out for {x}?",
                ),
            ),
            Detail(
                ("Of course {mishap} right away", "Not everything was smooth, {mishap}"),
                (
                    "What bad luck did {x} have in {destination}?",
                    "Which trouble did {x} run into on the trip to {destination}?",
                ),
            ),
            Detail(
                ("The company was great too: {with_whom}", "I went there with {with_whom}"),
                (
                    "Who went with {x} to {destination}?",
                    "Who was {x}'s travel companion in {destination}?",
                ),
            ),
        ),
    ),
    Topic(
        "the {subject} course",
        {
            "subject": "welding,sign language,creative writing,data science/statistics,first aid,"
            "Portuguese",
            "teacher": "a former circus clown,a very strict lady,someone younger than my "
            "son,a TV chef/celebrity",
            "hard": "remembering all the vocabulary,the homework/"
            "assignments,sitting still so long,the exam at the end/test",
        },
        (
            "I enrolled in a {subject} course {ago}",
            "Evening school it is, {subject}, started {ago}",
            "{ago} was my first lesson in {subject}",
        ),
        (
            "You never stop learning, I admire that.",
            "{subject}? What brought that on? Who teaches it?",
            "Is it difficult?",
        ),
        ("{x} sign up for the {subject} course", "{x} start studying {subject}"),
        ("What subjects has {x} taken lessons in?", "Which courses did {x} enroll in?"),
        (
            Detail(
                ("It's taught by {teacher}, believe it or not", "Our instructor is {teacher}"),
                (
                    "Who is {x}'s {subject} teacher?",
                    "Who gives the {subject} class that {x} attends?",
                ),
            ),
            Detail(
                ("The toughest thing is {hard}", "What I struggle with: {hard}"),
                (
                    "What does {x} find difficult about {subject}?",
                    "Which challenge does {x} face in the {subject} course?",
                ),
            ),
        ),
    ),
    Topic(
        "the {occasion}",
        {
            "occasion": "housewarming,baby shower,golden anniversary,graduation party,retirement do,"
            "surprise birthday",
            "honoree": "my boss,my twin nephews,the couple next door,Aunt Rosalind,my goddaughter",
            "gift": "a hand-sewn quilt/blanket,concert tickets,a bonsai/small tree,"
            "a framed map,a fondue set/kitchenware",
            "incident": "the cake slid off the table,it rained "
            "on the buffet,someone proposed,the dog ate the flowers",
        },
        (
            "We threw a {occasion} for {honoree} {ago}",
            "I helped organise the {occasion} of {honoree}",
            "{ago} was the {occasion} for {honoree}, finally over",
        ),
        (
            "I bet everyone loved it. Did all go to plan?",
            "What did you bring as a present?",
            "{honoree} must have been moved to tears.",
        ),
        ("{x} attend the {occasion} for {honoree}", "{x} celebrate with {honoree}"),
        ("What celebrations has {x} helped organise?", "Which parties did {x} attend?"),
        (
            Detail(
                ("My present was {gift}", "I gave {gift}, wrapped terribly"),
                ("What did {x} give to {honoree}?", "Which gift did {honoree} receive from {x}?"),
            ),
            Detail(
                ("The talk of the evening: {incident}", "And then {incident}!"),
                (
                    "What unexpected thing happened at {x}'s {occasion} for {honoree}?",
                    "What surprise was there at the {occasion} for {honoree}?",
                ),
            ),
        ),
    ),
    Topic(
        "the {vehicle}",
        {
            "vehicle": "van/camper,scooter,electric car,tandem bicycle,canoe/boat",
            "flaw": "the brakes "
            "squeal/noise,it has no reverse gear,the left door won't open,the battery dies in the "
            "cold",
            "price": "nine hundred,a trade for my old guitar,nothing, it was a favor,more than I "
            "should say",
            "plan": "drive to Alaska with it/road trip,rent it out,teach my kid on it,"
            "paint flames on it/decorate",
        },
        (
            "I bought a {vehicle} {ago}!",
            "Say hello to the new owner of a {vehicle}, since {ago}",
            "{ago} I picked up a used {vehicle}",
        ),
        (
            "No way! How much?",
            "A {vehicle}, is that safe? Any problems with it?",
            "I want a ride. What will you do with it?",
        ),
        ("{x} purchase the {vehicle}", "{x} acquire a {vehicle}"),
        ("What vehicles does {x} own?", "Which means of transport has {x} bought?"),
        (
            Detail(
                ("Only issue is that {flaw}", "It's not perfect, {flaw}"),
                (
                    "What is wrong with {x}'s {vehicle}?",
                    "Which defect does the {vehicle} of {x} have?",
                ),
            ),
            Detail(
                ("I got it for {price}", "It set me back {price}"),
                ("What did {x} pay for the {vehicle}?", "How much did the {vehicle} cost {x}?"),
            ),
            Detail(
                ("The dream is to {plan}", "As soon as I can I'll {plan}"),
                (
                    "What does {x} want to do with the {vehicle}?",
                    "What are {x}'s plans for the {vehicle}?",
                ),
            ),
        ),
    ),
    Topic(
        "{craft}",
        {
            "craft": "knitting/wool work,woodcarving,calligraphy/handwriting,candle making,origami/paper "
            "folding,leatherwork",
            "first": "a crooked scarf,a bear that looks like a potato,wedding invitations,a belt",
            "whence": "a video online/internet,the lady at the library,my great "
            "uncle,a kit from the flea market",
        },
        (
            "I've gotten hooked on {craft} {ago}",
            "My new hobby is {craft}",
            "{ago} I spent all afternoon on {craft}",
        ),
        (
            "Love it! What have you made so far?",
            "You have so many talents.",
            "How does one even get into {craft}?",
        ),
        ("{x} get into {craft}", "{x} take up {craft} as a hobby"),
        ("What hobbies has {x} gotten into?", "Which crafts does {x} do?"),
        (
            Detail(
                ("So far I only managed {first}", "My first result: {first}"),
                (
                    "What was {x}'s first creation in {craft}?",
                    "What did {x} produce while learning {craft}?",
                ),
            ),
            Detail(
                ("I learned it from {whence}", "It all started with {whence}"),
                ("How did {x} learn {craft}?", "Who or what introduced {x} to {craft}?"),
            ),
        ),
    ),
    Topic(
        "{team}",
        {
            "team": "the hockey club,my daughter's soccer team,the chess league,the rowing crew,the quiz "
            "night gang",
            "score": "lost by one point/narrow defeat,won four to two,drew again,were "
            "disqualified/kicked out",
            "place": "a freezing hall,the stadium by the river,Cleveland,the basement of a pub/bar",
            "position": "goalkeeper,captain,treasurer,the one who brings snacks",
        },
        (
            "There was a match with {team} {ago}",
            "{ago} {team} had the big final",
            "I've joined {team}",
        ),
        ("And, who won?", "Go {team}! Where was it?", "You're so sporty these days."),
        ("{x} have a match with {team}", "{x} play with {team}"),
        ("What teams is {x} part of?", "Which clubs has {x} joined?"),
        (
            Detail(
                ("We {score}, it was wild", "In short, we {score}"),
                ("How did {x}'s game with {team} end?", "What was the result of {team} with {x}?"),
            ),
            Detail(
                ("They made me {position}", "I'm the {position} now"),
                ("What is {x}'s role in {team}?", "Which function does {x} have with {team}?"),
            ),
            Detail(
                ("It all took place in {place}", "We met in {place} of all places"),
                ("Where did {x} play with {team}?", "At which venue was {team} with {x}?"),
            ),
        ),
    ),
    Topic(
        "{pastime}",
        {
            "pastime": "stargazing/astronomy,birdwatching,metal detecting,mushroom picking,kite surfing",
            "find": "a Roman coin,Saturn's rings,a pair of owls/birds,a wedding ring,a giant puffball",
            "where": "behind the quarry,up on the ridge,at low tide,on my uncle's farm",
            "gear": "a secondhand telescope,better boots/footwear,a thermos,a field guide/book",
        },
        ("I went {pastime} {ago}", "Spent the weekend doing {pastime}", "{ago} we tried {pastime}"),
        (
            "That's so peaceful. Did you spot anything?",
            "{pastime}, huh? Where do you go for that?",
            "Take me with you!",
        ),
        ("{x} go {pastime}", "{x} try {pastime}"),
        (
            "What outdoor activities has {x} tried?",
            "Which activities in nature did {x} spend a weekend with?",
        ),
        (
            Detail(
                ("Guess what turned up: {find}", "We actually came across {find}"),
                ("What did {x} find while {pastime}?", "What did {x} discover during {pastime}?"),
            ),
            Detail(
                ("The best spot is {where}", "We do it {where}"),
                ("Where does {x} go {pastime}?", "Which location does {x} prefer for {pastime}?"),
            ),
            Detail(
                ("For next time I need {gear}", "I treated myself to {gear} for it"),
                ("What equipment does {x} want for {pastime}?", "What did {x} buy for {pastime}?"),
            ),
        ),
    ),
    Topic(
        "the thing with my {relation}",
        {
            "relation": "landlord,ex-husband,sister-in-law,supervisor,upstairs neighbor",
            "matter": "the noise at 3 am,an unpaid bill/money,who keeps the sofa/furniture,a rude "
            "email/message,the parking spot",
            "outcome": "we shook hands/reconciled,I wrote a formal "
            "complaint,we don't speak any more,a mediator helped",
            "mood": "relieved,furious/angry,a little guilty,strangely calm",
        },
        (
            "I had a fight with my {relation} {ago}",
            "My {relation} and I clashed {ago}",
            "{ago} it blew up between me and my {relation}",
        ),
        ("Ugh, what was it about?", "I'm on your side. How did it end?", "Your {relation} again!"),
        ("{x} argue with the {relation}", "{x} have a conflict with the {relation}"),
        ("With whom has {x} had a fight?", "Which people did {x} clash with?"),
        (
            Detail(
                ("It was about {matter}, seriously", "All because of {matter}"),
                (
                    "What did {x} and the {relation} fight about?",
                    "What caused {x}'s dispute with the {relation}?",
                ),
            ),
            Detail(
                ("In the end {outcome}", "Long story short, {outcome}"),
                (
                    "How was the conflict between {x} and the {relation} settled?",
                    "What came of {x}'s argument with the {relation}?",
                ),
            ),
            Detail(
                ("Now I feel {mood}", "I've been {mood} ever since"),
                (
                    "How does {x} feel after the quarrel with the {relation}?",
                    "What is {x}'s mood about the {relation}?",
                ),
            ),
        ),
    ),
    Topic(
        "{exhibit}",
        {
            "exhibit": "the van Gogh show,a photography fair,the dinosaur hall,an open studio day,the "
            "glass museum",
            "favourite": "a tiny self-portrait/painting,the whale skeleton/bones,a wall "
            "of clocks,one picture of a foggy bridge",
            "thought": "about my childhood,how short life is/"
            "mortality,I should draw again/make art,of you immediately",
        },
        (
            "I was at {exhibit} {ago}",
            "{ago} we queued two hours for {exhibit}",
            "Went to {exhibit}, highly recommended",
        ),
        (
            "Culture! Which piece did you love?",
            "I've never been to {exhibit}.",
            "Art always makes me think.",
        ),
        ("{x} go to {exhibit}", "{x} visit {exhibit}"),
        ("What exhibitions has {x} been at?", "Which museums did {x} visit?"),
        (
            Detail(
                ("I stood in front of {favourite} for ages", "My favorite was {favourite}"),
                (
                    "What did {x} look at longest at {exhibit}?",
                    "Which object impressed {x} at {exhibit}?",
                ),
            ),
            Detail(
                ("It made me think {thought}", "I left thinking {thought}"),
                (
                    "What thoughts did {exhibit} bring up for {x}?",
                    "What was {x} reminded of at {exhibit}?",
                ),
            ),
        ),
    ),
    Topic(
        "my {body} routine",
        {
            "body": "yoga,weightlifting,rock climbing/bouldering,boxing,pilates",
            "freq": "three times a week,every dawn,only when it rains,twice a day",
            "coach": "an Olympic medalist,my ex-"
            "colleague Bruno,a grandmother of nine,an app/software",
            "goal": "to do one pull-up,to sleep better,for my knees/joints,to beat my brother",
        },
        (
            "I've taken up {body} {ago}",
            "{body} is my new obsession",
            "{ago} I had a trial session of {body}",
        ),
        (
            "Impressive discipline! How often do you go?",
            "{body}? I'd break in half.",
            "What's the aim of it all?",
        ),
        ("{x} take up {body}", "{x} begin with {body}"),
        ("What sports has {x} taken up?", "Which kinds of exercise does {x} do?"),
        (
            Detail(
                ("I do it {freq}, no excuses", "It's {freq} now"),
                ("How often does {x} do {body}?", "What is {x}'s schedule for {body}?"),
            ),
            Detail(
                ("I'm coached by {coach}", "Training with {coach} is something else"),
                ("Who trains {x} in {body}?", "Under whom does {x} practice {body}?"),
            ),
            Detail(
                ("I want {goal}, that's all", "The whole point is {goal}"),
                (
                    "What does {x} hope to achieve with {body}?",
                    "What's {x}'s objective for {body}?",
                ),
            ),
        ),
    ),
    Topic(
        "{project}",
        {
            "project": "a podcast on trains,an app for allergies,a children's book,a stand-up set/comedy,"
            "a crossword a day",
            "helper": "my neighbor's kid,an illustrator in Ghana/artist,a lawyer friend,nobody yet",
            "block": "I hate my own voice,the money ran out/funding,I can't find an "
            "ending,perfectionism",
            "reward": "a letter from a stranger,a small prize,my first ten fans/"
            "followers,an angry review",
        },
        (
            "I'm working on {project}, since {ago}",
            "{ago} I launched {project}",
            "My secret project is {project}",
        ),
        (
            "That's brilliant! Who's helping?",
            "How is {project} going? Any obstacles?",
            "I'd be your first fan.",
        ),
        ("{x} launch {project}", "{x} begin the work on {project}"),
        ("What projects has {x} worked on?", "Which things did {x} launch?"),
        (
            Detail(
                ("I do it with {helper}", "On board: {helper}"),
                ("Who supports {x} with {project}?", "Who works with {x} on {project}?"),
            ),
            Detail(
                ("What holds me up: {block}", "Right now I'm stuck, {block}"),
                (
                    "What is slowing {x} down with {project}?",
                    "Which obstacle does {x} have with {project}?",
                ),
            ),
            Detail(
                ("And I already got {reward}", "It brought me {reward}"),
                (
                    "What did {x} get for {project}?",
                    "What reaction did {x}'s work on {project} cause?",
                ),
            ),
        ),
    ),
    Topic(
        "{illness}",
        {
            "illness": "my mother's hip,the flu,our cat's kidney,a root canal,grandpa's memory",
            "remedy": "ginger tea,surgery in spring/operation,total rest,a new diet/food",
            "support": "the neighbors bring soup,my brother took leave/time off,a nurse comes daily/"
            "caregiver,we take turns",
        },
        (
            "We're worried about {illness} since {ago}",
            "{illness} kept us busy, it began {ago}",
            "{ago} {illness} got worse",
        ),
        (
            "Oh dear. What can be done?",
            "Sending hugs. Do you get any help?",
            "{illness}, that sounds exhausting.",
        ),
        ("{x} start worrying about {illness}", "{x} have trouble with {illness}"),
        ("What is {x} worried about at home?", "Which illnesses has {x}'s family been busy with?"),
        (
            Detail(
                ("They suggest {remedy}", "It looks like {remedy} is the way"),
                (
                    "What treatment is there for {illness} of {x}?",
                    "What do doctors advise {x} about {illness}?",
                ),
            ),
            Detail(
                ("Luckily {support}", "We manage because {support}"),
                ("Who helps {x} with {illness}?", "What assistance does {x} have for {illness}?"),
            ),
        ),
    ),
)

SMALL_TALK = (
    "Hiya {y}, hope you're doing alright!",
    "Morning, {y}! Ready for the weekend?",
    "It's been hectic, I barely have time to breathe.",
    "Can't complain. Well, I could, but who'd listen?",
    "You crack me up.",
    "Right? I keep telling people that.",
    "Aww, you're sweet, {y}.",
    "Seriously? I need all the details over dinner.",
    "Things have been up and down on my end.",
    "Keep me posted, will you?",
    "I often wonder where the years went.",
    "What would I do without your advice.",
    "Gotta run, {y}, hugs!",
    "See you around, greet the family.",
    "My phone battery is about to die, by the way.",
    "Been there. It gets easier.",
    "Let's do something fun next month, just us.",
    "I couldn't be prouder of you.",
    "Do you ever miss the old days?",
    "That's life, I suppose.",
    "Friends like you make all the difference.",
    "I'm saving that quote.",
    "Interesting, I never saw it from that side.",
    "How do you find the energy for all that?",
)
OPENERS = ("", "", "Ok, news: ", "Before I forget, ", "{y}, listen, ", "I've got to tell you, ",
           "Funny story. ", "Not much, except that ", "Finally some time to write. ")  # fmt: skip
CLOSERS = ("", "", ".", "!", ". Still can't believe it", ". And you, {y}?", ", I'm over the moon",
           ". No regrets", ". Did you have a good week?", ". Pictures to follow")  # fmt: skip
