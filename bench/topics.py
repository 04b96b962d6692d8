"""What the people of the bench's conversations talk about: one family of topics and phrases.

A slot's values may be ``said/asked``: the question uses another word than what was said. `{x}` is
who it is about, `{y}` the other one. See `bench.conversations` for how they become turns.
"""

# ruff: noqa: E501 - sentences
from __future__ import annotations

from typing import NamedTuple


class Detail(NamedTuple):
    """Something more about an event: how it is said (often without naming the event) and asked."""

    said: tuple[str, ...]
    asked: tuple[str, ...]


class Topic(NamedTuple):
    """A kind of event: how it's told, answered, asked for, and what may be added."""

    about: str
    """What a later turn calls it, if it names it at all."""
    slots: dict[str, str]
    """Name -> values, separated by commas."""
    told: tuple[str, ...]
    answered: tuple[str, ...]
    when: tuple[str, ...]
    """"When did ..." without those words."""
    gathered: tuple[str, ...]
    """Asks for one slot over all events of this kind: evidence is every turn that told one."""
    details: tuple[Detail, ...]


TOPICS = (
    Topic(
        "the {item}",
        {
            "item": "bowl,vase,mug/cup,plate/dish,teapot,lamp base",
            "look": "deep blue with tiny "
            "stars,speckled green,black and gold stripes,plain white with a crack in it,red like rust",
            "for_whom": "my mom/mother,a neighbor,our kitchen,my sister,the school raffle",
        },
        (
            "I finally finished my {item} at the studio {ago}",
            "My {item} came out of the kiln {ago} and I can't stop looking at it",
            "{ago} in class I threw a {item} on the wheel",
        ),
        (
            "A {item}, wow! What does it look like?",
            "You're getting so good with clay. Show me!",
            "So cool. Was the {item} hard to make?",
        ),
        ("{x} make the {item}", "{x} complete a ceramic {item}"),
        ("What has {x} thrown on the wheel?", "Which pottery did {x} make at the studio?"),
        (
            Detail(
                ("It turned out {look}", "I glazed it {look}, took three tries"),
                ("What does the {item} {x} made look like?", "What color is {x}'s {item}?"),
            ),
            Detail(
                ("I'm giving it to {for_whom}", "It's meant for {for_whom}, don't tell anyone"),
                ("Who will get the {item} that {x} made?", "For whom did {x} make the {item}?"),
            ),
        ),
    ),
    Topic(
        "{place}",
        {
            "place": "the Rockies,Lake Superior,a canyon in Utah,the coast of Maine,Yosemite,the Alps",
            "saw": "a meteor shower,two moose,an eagle/a bird of prey,a double rainbow,a bear cub",
            "trouble": "the tent leaked/shelter problems,we ran out of gas,the stove broke,it "
            "snowed/bad weather",
        },
        (
            "We went camping at {place} {ago}",
            "Just back from {place}, five days under the stars",
            "{ago} the whole family drove out to {place} with the tent",
        ),
        (
            "{place} must be gorgeous! Any highlights?",
            "I'd love to sleep outdoors there.",
            "Nature is the best medicine. How was it?",
        ),
        ("{x} go camping at {place}", "{x}'s family take a trip to {place}"),
        ("Where has {x} gone camping?", "Which places did {x} drive to with a tent?"),
        (
            Detail(
                (
                    "One night we saw {saw} and nobody spoke for ten minutes",
                    "And then {saw}, right over our heads",
                ),
                (
                    "What did {x} see at {place}?",
                    "What was the most memorable sight for {x} at {place}?",
                ),
            ),
            Detail(
                ("Only bad part: {trouble} on day two", "Well, {trouble}, so we improvised"),
                (
                    "What went wrong when {x} was at {place}?",
                    "Which problem did {x} have on the trip to {place}?",
                ),
            ),
        ),
    ),
    Topic(
        "{pet}",
        {
            "animal": "puppy/dog,kitten/cat,parrot/bird,rescue greyhound/dog,rabbit/bunny",
            "pet": "Biscuit,Luna,Pepper,Mango,Otis,Willow,Ziggy,Clover",
            "habit": "steals socks,sleeps in the sink,barks at the toaster,hides under the "
            "piano,chews every cable",
        },
        (
            "We adopted a {animal} {ago}! The name is {pet}",
            "Meet {pet}, our new {animal}",
            "There's a {animal} in my house now, called {pet}, since {ago}",
        ),
        (
            "Aww, {pet} is adorable! How is it settling in?",
            "A {animal}! The kids must be thrilled.",
            "Pets make everything better. Tell me more!",
        ),
        ("{x} get {pet}", "{x} bring home the {animal} {pet}"),
        ("What are the names of {x}'s pets?", "Which animals has {x} adopted?"),
        (
            Detail(
                ("The little one {habit}, all day long", "So far it just {habit}"),
                ("What funny thing does {pet} do?", "Which odd habit has {x}'s {animal}?"),
            ),
        ),
    ),
    Topic(
        "{firm}",
        {
            "role": "shift manager/leadership position,lab assistant,copy editor,tour guide,school "
            "counselor",
            "firm": "a small museum,the city library,a robotics startup,the hospital,"
            "a travel agency",
            "worry": "the long commute/travel time,speaking in front of people,"
            "my old boss,the night shifts,the software they use",
        },
        (
            "Big news, I got the job as {role} at {firm}",
            "{ago} {firm} called, they want me as {role}!",
            "I start as a {role} at {firm} soon, signed {ago}",
        ),
        (
            "Congrats! You deserve it. Nervous?",
            "{firm} is lucky to have you!",
            "That's huge! What are you most unsure about?",
        ),
        ("{x} get hired as {role}", "{x} accept the position at {firm}"),
        ("Which jobs has {x} gotten?", "Where has {x} started a job?"),
        (
            Detail(
                ("Honestly {worry} scares me a bit", "My only concern is {worry}"),
                (
                    "What is {x} anxious about in the new position at {firm}?",
                    "What worries {x} about working as {role}?",
                ),
            ),
        ),
    ),
    Topic(
        "{book}",
        {
            "book": "a novel about a lighthouse keeper,the history of salt,a biography of Ada "
            "Lovelace,poems by Rumi,a thriller set in Oslo,a memoir by a beekeeper",
            "lesson": "patience pays off,you should forgive yourself,nobody is alone,small habits "
            "matter,it's fine to start over",
            "giver": "my aunt,a coworker/colleague,the book club,grandpa,an old teacher",
        },
        (
            "I just finished {book}, couldn't put it down",
            "I've been reading {book} every night",
            "{ago} I stayed up till 3 with {book}",
        ),
        (
            "Sounds like my kind of read. What did you take from it?",
            "Ooh, {book}? Worth it?",
            "I need something new for the shelf. Who told you about it?",
        ),
        ("{x} finish {book}", "{x} read {book}"),
        ("What books has {x} read?", "What has {x} been reading?"),
        (
            Detail(
                ("It taught me that {lesson}", "The big takeaway for me was that {lesson}"),
                ("What did {x} learn from {book}?", "What message did {x} take away from {book}?"),
            ),
            Detail(
                ("{giver} recommended it to me", "It was a present from {giver}, actually"),
                ("Who suggested {book} to {x}?", "From whom did {x} hear about {book}?"),
            ),
        ),
    ),
    Topic(
        "{race}",
        {
            "race": "a half marathon,a charity 5K/charity run,a triathlon,a trail race,the city "
            "relay",
            "result": "in under two hours,dead last but smiling,third in my age group,with "
            "a twisted ankle/an injury",
            "cause": "the food bank,mental health,ocean cleanup,a local shelter/homeless people",
        },
        (
            "I ran {race} {ago}",
            "Guess who signed up for {race} and survived, {ago}",
            "My legs still hurt from {race}",
        ),
        (
            "Proud of you! How did it go?",
            "{race}! I get tired on the stairs.",
            "That takes guts. What made you do it?",
        ),
        ("{x} take part in {race}", "{x} compete in {race}"),
        ("Which races has {x} run?", "What did {x} sign up for as a runner?"),
        (
            Detail(
                ("I crossed the line {result}", "Came in {result}, can you believe it"),
                ("How did {x} do in {race}?", "With what outcome did {x} finish {race}?"),
            ),
            Detail(
                ("We raised money for {cause}", "All of it was to support {cause}"),
                ("What was {race} of {x} in aid of?", "Which cause did {x} support with {race}?"),
            ),
        ),
    ),
    Topic(
        "the {dish}",
        {
            "dish": "lasagna,dumplings,a lemon tart/dessert,pad thai,vegan chili,banana bread,paella",
            "secret": "a spoonful of miso,roasted garlic,orange zest,smoked paprika,brown butter",
            "guests": "the in-laws,six hungry teenagers,my running group,the neighbors,an old roommate",
        },
        (
            "I cooked {dish} for {guests} {ago}",
            "{ago} I tried making {dish} from scratch",
            "My {dish} was a hit, nothing left over",
        ),
        ("Yum! What's in it?", "Save me some {dish} next time!", "You and your kitchen magic."),
        ("{x} cook {dish}", "{x} prepare {dish} for people"),
        ("What meals has {x} cooked?", "Which dishes did {x} make from scratch?"),
        (
            Detail(
                ("The trick is {secret}", "I put in {secret}, that changes everything"),
                ("What ingredient makes {x}'s {dish} special?", "What does {x} add to {dish}?"),
            ),
        ),
    ),
    Topic(
        "{tool}",
        {
            "tool": "the cello,the drums,ukulele,saxophone,the accordion,piano",
            "piece": "a Bach suite/classical music,Blackbird,a tango,something by Nina Simone,a folk "
            "tune",
            "reason": "it calms me down/stress relief,my dad used to play,I want to join a "
            "band,I needed a challenge",
        },
        (
            "I started taking {tool} lessons {ago}",
            "I picked up {tool} again {ago}",
            "{ago} I bought myself a used instrument, so it's {tool} for me now",
        ),
        (
            "Nice! What are you practicing?",
            "I always wanted to learn {tool}. Why now?",
            "Play me something one day!",
        ),
        ("{x} begin to learn {tool}", "{x} start with {tool}"),
        (
            "What instruments does {x} take lessons in?",
            "Which musical instruments has {x} started?",
        ),
        (
            Detail(
                ("Right now I'm stuck on {piece}", "This week it's {piece} over and over"),
                (
                    "What is {x} practicing on {tool}?",
                    "What music does {x} try to play with {tool}?",
                ),
            ),
            Detail(
                ("Mostly because {reason}", "Truth is, {reason}"),
                ("Why did {x} take up {tool}?", "What motivated {x} to learn {tool}?"),
            ),
        ),
    ),
    Topic(
        "{group}",
        {
            "group": "a beach cleanup/environmental work,the soup kitchen,a mentoring program for "
            "teens,the animal shelter,a literacy class for adults",
            "met": "a retired pilot,a girl who "
            "wants to be a vet,a veteran named Sam,a chef from Peru",
            "felt": "humbled,exhausted but happy,more grateful,hopeful again",
        },
        (
            "I volunteered at {group} {ago}",
            "I spent the day helping out at {group}",
            "{ago} I joined {group}, long overdue",
        ),
        (
            "Good for you! Meet anyone interesting?",
            "The world needs more people like you.",
            "I've heard of {group}. How was it?",
        ),
        ("{x} volunteer at {group}", "{x} help at {group}"),
        ("Where has {x} volunteered?", "Which groups has {x} joined to help out?"),
        (
            Detail(
                (
                    "I talked with {met} for an hour",
                    "There was {met} who told me their whole story",
                ),
                ("Whom did {x} meet at {group}?", "Who told {x} a story at {group}?"),
            ),
            Detail(
                ("I came home {felt}", "It left me {felt}"),
                (
                    "How did {x} feel after helping at {group}?",
                    "What effect did {group} have on {x}?",
                ),
            ),
        ),
    ),
    Topic(
        "{thing}",
        {
            "thing": "the bathroom,our porch,grandma's dresser,an old bike,the attic",
            "colour": "sage green,mustard yellow,navy,terracotta",
            "cost": "forty bucks,three weekends,way more than planned,one broken window",
        },
        (
            "I've been fixing up {thing} since {ago}",
            "{thing} is done! Finished {ago}",
            "Finally got around to {thing}",
        ),
        (
            "DIY hero! Which color did you pick?",
            "Before and after pictures of {thing}, please!",
            "I can't even hang a shelf.",
        ),
        ("{x} renovate {thing}", "{x} repair {thing}"),
        ("What has {x} fixed at home?", "Which home projects did {x} finish?"),
        (
            Detail(
                ("We went with {colour} in the end", "I painted everything {colour}"),
                (
                    "In which color did {x} paint {thing}?",
                    "What shade was chosen for {thing} by {x}?",
                ),
            ),
            Detail(
                ("It cost me {cost}", "Price of the whole thing: {cost}"),
                ("How much did {x} spend on {thing}?", "What was the price {x} paid for {thing}?"),
            ),
        ),
    ),
    Topic(
        "my {kin} in {city}",
        {
            "kin": "brother,cousin,best friend,niece,daughter",
            "city": "Lisbon,Denver,Seoul,Montreal,Nairobi",
            "plan": "visit the markets,see a jazz club,go to the aquarium,hike to a waterfall",
        },
        (
            "My {kin} is moving to {city}",
            "I flew out to {city} to see my {kin} {ago}",
            "{ago} my {kin} visited from {city}",
        ),
        ("{city}! What did you two get up to?", "Family time is the best.", "You must miss them!"),
        ("{x} see the {kin} from {city}", "{x} spend time with the {kin}"),
        ("From where did {x}'s family visit?", "Which cities did {x} fly to for family?"),
        (
            Detail(
                ("We managed to {plan} together", "Best moment was when we got to {plan}"),
                (
                    "What did {x} do with the {kin} from {city}?",
                    "Which activity did {x} share with the {kin}?",
                ),
            ),
        ),
    ),
    Topic(
        "the {scare}",
        {
            "scare": "a sprained wrist/injury,high blood pressure,migraines/headaches,a bad back,"
            "trouble sleeping/insomnia",
            "cure": "swimming every morning,cutting out coffee/caffeine,"
            "physical therapy,a new pillow,evening walks",
            "doctor": "Dr. Patel,my cousin who is a nurse,a specialist downtown",
        },
        (
            "I've been dealing with {scare} since {ago}",
            "The checkup showed {scare}, ugh",
            "{ago} I ended up in urgent care with {scare}",
        ),
        (
            "Oh no, take care! What are they doing about it?",
            "I'm sorry. {scare} is no joke.",
            "Please rest. Who are you seeing for it?",
        ),
        ("{x} have to deal with {scare}", "{x} get medical attention for {scare}"),
        ("What health problems has {x} been dealing with?", "What did {x}'s checkups show?"),
        (
            Detail(
                ("What helps is {cure}", "I'm on a plan now: {cure}"),
                ("What does {x} do against {scare}?", "How does {x} treat {scare}?"),
            ),
            Detail(
                ("{doctor} takes it seriously", "I went to {doctor} about it"),
                ("Who looks after {x} because of {scare}?", "Whom did {x} consult for {scare}?"),
            ),
        ),
    ),
    Topic(
        "{show}",
        {
            "show": "a documentary on octopuses/film,the new space opera,a baking contest,an old "
            "western,a musical about Hamilton",
            "opinion": "the ending made no sense/plot,the music "
            "was stunning,I cried twice/emotional,way too long",
            "company": "my roommate,the twins,a date,nobody, just popcorn",
        },
        (
            "I watched {show} {ago}",
            "{ago} I went to see {show}",
            "Have you seen {show}? I just did",
        ),
        (
            "Not yet, no spoilers! Did you like it?",
            "I heard mixed things about {show}.",
            "Movie nights are the best. Who came along?",
        ),
        ("{x} watch {show}", "{x} see {show}"),
        ("What movies and shows has {x} seen?", "Which films did {x} watch?"),
        (
            Detail(
                ("For me, {opinion}", "My two cents: {opinion}"),
                ("What did {x} think of {show}?", "How did {x} like {show}?"),
            ),
            Detail(
                ("I was there with {company}", "Company for the evening: {company}"),
                ("With whom did {x} watch {show}?", "Who accompanied {x} to {show}?"),
            ),
        ),
    ),
    Topic(
        "the {plant}",
        {
            "plant": "tomatoes/vegetables,sunflowers,a fig tree,lavender,strawberries/fruit",
            "enemy": "slugs,the neighbor's goat,a late frost,squirrels",
            "gain": "twelve jars of jam,a full basket,exactly one,more than we can eat",
        },
        (
            "I planted {plant} in the yard {ago}",
            "My {plant} are finally coming in",
            "{ago} I dug up half the lawn for {plant}",
        ),
        (
            "Green thumb! How is the harvest?",
            "I kill every cactus. {plant}, really?",
            "Gardening is therapy. Any pests?",
        ),
        ("{x} plant {plant}", "{x} grow {plant}"),
        ("What does {x} grow in the yard?", "Which plants has {x} planted?"),
        (
            Detail(
                ("{enemy} got most of it though", "We're at war with {enemy}"),
                ("What damaged {x}'s {plant}?", "Which pest threatens {x}'s {plant}?"),
            ),
            Detail(
                ("So far we got {gain}", "The yield: {gain}"),
                ("How much did {x} harvest of {plant}?", "What was the yield of {x}'s {plant}?"),
            ),
        ),
    ),
)

SMALL_TALK = (
    "Hey {y}! Good to hear from you. How have you been?",
    "Long time no talk, {y}! What's new?",
    "Busy week over here, work and kids and everything.",
    "I'm good, thanks for asking! A bit tired.",
    "Haha, that's so you.",
    "Totally agree, it's the little things that count.",
    "Thanks, {y}! That means a lot to me.",
    "Wow, I didn't expect that. Tell me more when we meet.",
    "Same here, life has been a rollercoaster.",
    "Sure thing! Let me know how it goes.",
    "I've been thinking a lot about what really matters lately.",
    "You always know what to say.",
    "Take care, {y}. Talk soon!",
    "Bye! Say hi to everyone from me.",
    "The weather here is crazy, rain and sun and rain again.",
    "I know the feeling. One step at a time.",
    "We should catch up in person soon, coffee on me.",
    "Awesome! I'm really happy for you.",
    "Ha, remember when we were young and had no worries?",
    "It's a journey, but I wouldn't change it.",
    "Yeah, spending time with loved ones recharges me.",
    "Honestly, I needed to hear that today.",
    "That's a great way to look at it.",
    "What keeps you going these days?",
)
OPENERS = ("", "", "Guess what. ", "Oh, by the way, ", "Hey {y}, ", "You won't believe it: ",
           "So, ", "Since we last spoke a lot happened. ", "Well! ")  # fmt: skip
CLOSERS = ("", "", ".", "!", ". It was amazing", ". What about you, {y}?", ", best decision ever",
           ". Felt really good", ". How's your week going?", ". I'll send you a photo")  # fmt: skip
