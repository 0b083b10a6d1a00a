"""One table of templates: what an event is, and how it is told. Read forwards it writes a sentence,
backwards it says what a sentence means.

Slots: {A} and {B} are people, by name or as he or she; {A.his}, {A.he} and so on agree with A;
{AB} is "Mia and Ben" or they; {O} is "the kite", {O.a} "a kite", {O.n} "kite" (so {Q}); {P.at} is
"by the river", {P.to} "to the river", {P} "river" (so {P2}); {K} is a kind, {K.a} "a fox", {R} a
trait, {F} and {G} are good and bad feelings, {T} and {D} a task, asked for and done, {V} and {U} a
use, meant and made, {S} a signal and {N} what is followed, {L} what came loose, {I} what is done
indoors, {X} what goes knock in the dark, and {C} what it only was.
"""

import re
from functools import lru_cache

from tinytf_course.stories import words as w

TEMPLATES = {
    # who there is
    "open": (
        "Once there was a {R} {K} named {A}.",
        "One morning, a {R} {K} named {A} woke up early.",
        "One morning, {K.a} named {A} woke up early.",
        "Long ago, a {R} {K} named {A} lived in a small house.",
        "One ordinary Tuesday, a {R} {K} named {A} came out to play.",
    ),
    "open_own": (
        "Once there was a {R} {K} named {A} who had {O.a}.",
        "One morning, {K.a} named {A} took out {O.a}, {A.his} greatest treasure.",
        "A {R} {K} named {A} had {O.a} and took it everywhere.",
        "There once lived a {R} {K} named {A}, and {A.his} greatest treasure was {O.a}.",
    ),
    "open_want": (
        "Once there was a {R} {K} named {A} who wished for {O.a}.",
        "More than anything, a {R} {K} named {A} wanted {O.a}, to {V}.",
        "Every night, a {R} {K} named {A} dreamed of {O.a}.",
        "One morning, {K.a} named {A} woke up and wished for {O.a}.",
    ),
    "friend": (
        "{A.His} best friend was a {R} {K} named {B}.",
        "Next door lived a {R} {K} named {B}.",
        "{A} had a friend, {K.a} named {B}.",
        "{A.His} best friend was {K.a} named {B}.",
        "{A} had a friend, a {R} {K} named {B}.",
    ),
    "meet": (
        "There {A} met a {R} {K} named {B}.",
        "Just then, a {R} {K} named {B} came along.",
        "A {R} {K} named {B} came by.",
    ),
    "has": ("{B} had {O.a}.",),
    "has_home": ("{B} had {O.a} at home.", "{B} had {O.a}, and all the neighbours knew it."),
    "brought": ("{B} had brought {O.a}.", "{B} had come with {O.a}."),
    "want": ("But {A} dreamed of {O.a}, to {V}.", "What {A} really wanted was {O.a}."),
    # ways
    "go": (
        "{A} went {P.to}.",
        "One day, {A} walked {P.to}.",
        "{A} ran all the way {P.to}.",
        "Whistling, {A} set out for the {P}.",
    ),
    "go_both": (
        "{AB} went {P.to} together.",
        "Side by side, {AB} walked {P.to}.",
        "{AB} hurried {P.to}.",
    ),
    "back": (
        "{A} went back to {B}.",
        "{A} hurried back to {B}.",
        "Without stopping once, {A} went back to {B}.",
    ),
    "see": tuple(detail for _, details in w.PLACES.values() for detail in details),
    # feelings
    "sad": (
        "{A} was {G}.",
        "{A} was so {G} that {A.he} sat down and sighed.",
        "A tear ran down {A.his} nose, and {A} let it run.",
    ),
    "glad": (
        "{A} was {F}.",
        "{A} was so {F} that {A.he} turned a somersault.",
        "Never had {A} been so {F}.",
    ),
    "sad_both": ("{AB} were {G}.", "{AB} looked at the sky and sighed."),
    "laugh": ("They laughed until their bellies hurt.", "{AB} looked at each other and laughed."),
    "thank": (
        "“Thank you, {B},” said {A}.",
        "{A} thanked {B} with a hug.",
        "“You are a true friend, {B},” said {A}.",
    ),
    "use": ("{A} {U}.", "Then {A} {U}.", "With shining eyes, {A} {U}."),
    # lost and found
    "lose": (
        "{A} looked up at a bird, and {O} slipped away.",
        "{A} put {O} down for a moment and forgot it.",
        "{A} ran after a butterfly and lost {O}.",
    ),
    "ask_why": ("“Why are you so {G}?” asked {B}.", "“What is the matter?” asked {B}."),
    "tell_lost": (
        "“I have lost my {O.n},” said {A}.",
        "“My {O.n} is gone,” said {A}.",
    ),
    "promise_help": (
        "“I will help you look,” said {B}.",
        "“Do not worry. I promise to help you,” said {B}.",
    ),
    "search": (
        "{AB} looked to the left and to the right.",
        "{AB} searched high and low.",
        "With four eyes, {AB} looked for {O}.",
        "{AB} looked everywhere twice, in case {O} had come back.",
    ),
    "find": (
        "At last {A} found {O} {P.at}.",
        "“Here it is!” cried {A}, and held up {O}.",
        "{A} saw it first: there lay {O}, as if it had been waiting.",
    ),
    "pocket": (
        "“Look into your own pocket,” said {B} at last.",
        "“What is that in your pocket?” asked {B}.",
    ),
    "find_pocket": (
        "{A} looked, and there was {O}.",
        "{A} reached into {A.his} pocket and took out {O}.",
    ),
    "give": (
        "{A} gave {O} to {B}.",
        "With a smile, {A} handed {B} {O}.",
        "{A} held out {O}, and {B} took it.",
    ),
    # a wish
    "may_i": ("“May I have your {O.n}?” asked {A}.", "“Would you give me your {O.n}?” asked {A}."),
    "bargain": (
        "“If you {T}, it is yours,” said {B}.",
        "“First {T}. Then the {O.n} is yours,” said {B}.",
        "“Only if you {T},” said {B}.",
    ),
    "task": (
        "There {A} {D} until the sun stood low.",
        "{A} {D}, and it was hard work.",
        "{A} {D} and did not rest once.",
    ),
    "report": ("“It is done. I {D},” said {A}.", "“I {D}, and I did it all myself,” said {A}."),
    "word": ("“A promise is a promise,” said {B}.", "“I keep my word,” said {B}."),
    # a trade
    "offer": (
        "“Shall we trade, my {O.n} for your {Q.n}?” asked {A}.",
        "“I will give you my {O.n} for your {Q.n},” said {A}.",
    ),
    "agree": ("“Yes, let us trade!” said {B}.", "{B} thought about it and nodded."),
    "trade": (
        "So {A} gave {B} {O}, and {B} gave {A} {Q}.",
        "{A} held out {O}, {B} held out {Q}, and they traded.",
    ),
    "miss": ("But that night, {A} missed {O}.", "But without {O}, {A} could not fall asleep."),
    "miss_too": (
        "In the morning, {B} knocked and said, “I miss my {Q.n}.”",
        "The next morning, {B} came and said, “I miss my {Q.n}.”",
    ),
    "trade_back": (
        "So {A} took back {O}, and {B} took back {Q}.",
        "And so {A} had {O} again, and {B} had {Q}.",
    ),
    # rain
    "plan": (
        "{AB} wanted to take {O} {P.to} the next day.",
        "“Tomorrow we will take {O} {P.to},” said {A} to {B}.",
    ),
    "rain": (
        "But just as they set out, it began to rain.",
        "But the next morning, it rained and rained.",
        "The next morning, the first raindrop fell on {A}, and the second on {O}.",
    ),
    "idea": (
        "“I know what to do. Let us go {P.to},” said {B}.",
        "“Then we will go {P.to} instead,” said {B}.",
    ),
    "fun": ("{AB} {I}.", "There {AB} {I}, and the rain drummed on the roof."),
    "puddle": ("“A boat loves water!” cried {B}, and they let it sail through the puddles.",),
    "clear": ("The next morning, the rain was over.", "Two days later, the sun was shining."),
    "at_last": ("So {AB} took {O} {P.to} after all.", "At last, {AB} took {O} {P.to}."),
    # a secret
    "made": ("In secret, {A} had bought {O.a} for {B}.", "{A} had {O.a} for {B}, but nobody knew."),
    "hide": ("{A} hid {O} {P.at}.", "So that nobody would see it, {A} hid {O} {P.at}."),
    "ask_hide": ("“What are you hiding?” asked {B}.", "“Where have you been?” asked {B}."),
    "not_tell": ("“I cannot tell you yet,” said {A}.", "“Wait and see,” said {A}."),
    "left_out": ("{B} turned away without a word.", "{B} thought that {A} had a new friend."),
    "birthday": (
        "Soon after, {B} had a birthday.",
        "At last came the big day, and {B} had a birthday.",
    ),
    "come": (
        "“Come with me {P.to},” said {A}.",
        "“I have something to show you {P.at},” said {A}.",
    ),
    "reveal": ("There {A} brought out {O}.", "{A} reached into the hiding place and took out {O}."),
    "hooray": ("“Happy birthday, {B}!” cried {A}.", "“I have kept this for you,” said {A} to {B}."),
    # a promise
    "may_borrow": (
        "“May I borrow your {O.n}?” asked {A}.",
        "“Will you lend me your {O.n} for the day?” asked {A}.",
    ),
    "lend": (
        "“Yes, but bring it back before dark,” said {B}, and gave {A} {O}.",
        "“Take it, but bring yourself back, too,” said {B}, and gave {A} {O}.",
        "{B} lent {A} {O}.",
    ),
    "promise_back": (
        "“I promise to bring it back before dark,” said {A}.",
        "“You will have it back before dark, I promise,” said {A}.",
    ),
    "late": ("Soon the sun went down.", "Then the first star came out."),
    "remember": ("“I must keep my promise,” thought {A}.", "Then {A} remembered {A.his} promise."),
    "return": ("{A} gave back {O}.", "“Here is your {O.n},” said {A}, and gave it back."),
    "kept": ("“You kept your promise,” said {B}.", "“I knew that you would come,” said {B}."),
    "oversleep": (
        "But {A} lay down and fell asleep, and when {A.he} woke up, it was dark.",
        "But {A} lay down to rest for a moment, and slept until the next morning.",
    ),
    "waited": ("{B} had waited at the window.", "{B} had waited and waited."),
    "sorry_late": (
        "“I fell asleep, and I am sorry,” said {A}.",
        "“I fell asleep and broke my promise,” said {A}.",
    ),
    "forgive_late": (
        "“I was angry, but now you are here,” said {B}.",
        "“Next time, take me along to wake you,” said {B}.",
    ),
    # something breaks
    "break": (
        "By accident, {A} dropped {O}, and it broke.",
        "{A} stumbled over a stone, and {O} broke.",
    ),
    "tempt": ("Nobody had seen it.", "“I could say that it was the wind,” thought {A}."),
    "lie": ("“The wind broke your {O.n},” said {A}.",),
    "restless": (
        "After that, {A} could not look at {B}.",
        "But the lie sat in {A.his} stomach like a stone.",
    ),
    "truth": (
        "“I broke your {O.n}, and I am sorry,” said {A}.",
        "“Your {O.n} broke, and it was my fault,” said {A}.",
    ),
    "confess": (
        "“It was not the wind. I broke your {O.n},” said {A}.",
        "“I did not tell the truth. I broke your {O.n},” said {A}.",
    ),
    "forgive": (
        "“Thank you for telling the truth,” said {B}.",
        "“I am not angry, because you told me,” said {B}.",
    ),
    "mend": ("{A} mended {O} with string and glue.", "{AB} mended {O} together."),
    # a quarrel
    "spot": ("There they saw {O.a} that belonged to nobody.", "On the ground, {AB} found {O.a}."),
    "mine": ("“It is mine! I saw it first,” said {A}.", "“I want it for myself,” said {A}."),
    "no_mine": ("“No, it is mine!” said {B}.", "“But I saw it, too,” said {B}."),
    "sulk": (
        "{AB} turned their backs on each other.",
        "For an hour, {AB} did not speak.",
        "{A} held {O} tight, and {B} did not let go either.",
    ),
    "dull": ("But playing alone is no fun.", "After a while, both of them were bored."),
    "turns": ("“Let us take turns,” said {B}.", "“I have an idea. It can be ours,” said {B}."),
    "share": (
        "So {O} belonged to both, one day for {A} and one day for {B}.",
        "So {A} had {O} in the morning, and {B} had it in the evening.",
    ),
    # lost in the dark
    "no_way": ("{A} could not find {A.his} way home.", "Every path looked the same to {A}."),
    "afraid": ("{A} was afraid.", "{A} called, but nobody answered."),
    "worry": (
        "At home, {B} looked at the clock and was worried.",
        "“Where is {A}?” thought {B} at home.",
    ),
    "signal": ("So {B} went outside and {S}.", "Then {B} {S}, again and again."),
    "follow": (
        "{A} followed the {N} all the way home.",
        "Step by step, {A} followed the {N} until {A.he} saw {B}.",
    ),
    # a race
    "boast": ("“I am much faster than you,” said {A}.", "“Nobody runs as fast as I do,” said {A}."),
    "race": ("“Then let us race {P.to},” said {B}.", "“Shall we race {P.to}?” asked {B}."),
    "trip": (
        "Halfway there, {A} tripped over a root.",
        "{A} looked back to laugh, and fell into a puddle.",
    ),
    "help_up": (
        "{B} could have won, but {B.he} turned back and helped {A} up.",
        "But {B} stopped and helped {A} up.",
    ),
    "tie": ("{AB} reached the {P} at the same moment.", "Arm in arm, {AB} reached the {P}."),
    "both_won": (
        "“We both won,” said {A}.",
        "“You could have won, but you stopped for me,” said {A}.",
    ),
    # something in the dark
    "dread": (
        "{A} never went {P.to}, because something in there {X}.",
        "Something {P.at} {X}, and {A} did not dare to look.",
    ),
    "monster": ("“There is a monster {P.at},” said {A}.", "“Do not go {P.to}!” said {A}."),
    "look_together": (
        "“Let us look together,” said {B}.",
        "“Take my hand, and we will see,” said {B}.",
    ),
    "only": ("It was only {C}.", "It was nothing but {C}."),
    # ill in bed
    "ill": (
        "One day, {B} was ill and had to stay in bed.",
        "One day, {B} caught a cold and could not go out.",
    ),
    "visit": (
        "“You may have my {O.n} until you are well,” said {A}.",
        "“Take my {O.n} to keep you company,” said {A}.",
    ),
    "well": ("After a week, {B} was well again.", "Soon {B} could get up and laugh again."),
    # hide and seek
    "play": ("“Let us play hide and seek,” said {A}.", "“You hide, and I will seek,” said {A}."),
    "hides": ("{A} counted to ten, and {B} hid {P.at}.", "{B} tiptoed away and hid {P.at}."),
    "not_there": (
        "{A} looked {P.at}, but nobody was there.",
        "First {A} looked {P.at}, but found nobody.",
    ),
    "sneeze": ("Then someone sneezed {P.at}.", "Then a giggle came from the {P}."),
    "found_you": ("“I have found you!” cried {A}.", "“There you are!” cried {A}, and hugged {B}."),
    # a seed
    "plant": ("{A} planted a seed {P.at}.", "One spring day, {A} planted a seed {P.at}."),
    "water": ("Every day, {A} watered it.", "Every day, {A} watered it and sang to it."),
    "nothing": ("But nothing came up.", "A week went by, and the earth stayed bare."),
    "never": ("“It will never grow,” said {A}.", "“I give up,” said {A}."),
    "wait": ("“Water it for one more week,” said {B}.", "“Good things take time,” said {B}."),
    "bloom": (
        "And one day, a tall sunflower stood {P.at}.",
        "Then, one morning, a small green shoot peeped out {P.at}.",
    ),
    # a suspicion
    "gone": ("One morning, {O} was gone.", "But one day, {A} could not find {O} anywhere."),
    "sees": ("Then {A} saw {B} {P.at}, with {O}.", "{P.At}, {A} found {B} with {O}."),
    "thief": ("“You took my {O.n}!” cried {A}.", "“Thief!” shouted {A}."),
    "explain": (
        "“Its {L} was loose, and I have mended it for you,” said {B}.",
        "“I mended its {L}. I wanted to surprise you,” said {B}.",
    ),
    "sorry_shout": (
        "“I am sorry that I shouted,” said {A}.",
        "{A} blushed and asked {B} to forgive {A.him}.",
    ),
    "take": (
        "{A} took {O} {P.to}.",
        "{A} went {P.to} and took {O} along.",
        "{A} brought {O} {P.to}.",
    ),
    "errand": (
        "{A} went {P.to} to pick flowers.",
        "{A} went {P.to} to draw the clouds.",
        "{A} went {P.to} to look for feathers.",
    ),
    "no_more": (
        "When {A} reached for {O}, there was only air.",
        "Suddenly {A} could not find {O} any more.",
    ),
    "dusk": ("Soon the shadows grew long.", "Then the sun turned red."),
    "better": (
        "And {A} and {B} were better friends than ever.",
        "And ever since, {A} and {B} have stuck together.",
        "After that, nothing could part {A} and {B}.",
    ),
    "water_on": (
        "So {A} watered it again, day after day.",
        "So {A} went on, and did not ask how long.",
    ),
    "of_course": ("“It is all right,” said {B}.", "“I would have shouted, too,” said {B}."),
    "creep": ("{AB} crept {P.to}, step by step.", "Hand in hand, {AB} crept {P.to}."),
    # the end
    "friends": (
        "From that day on, {A} and {B} were best friends.",
        "And {A} and {B} were friends ever after.",
    ),
    "asleep": ("That night, {A} fell asleep with a smile.",),
    "homeward": ("{A} skipped all the way home.", "{A} sang all the way home."),
    "tight": (
        "And {A} took good care of {O} ever after.",
        "And from then on, {O} had a place beside {A.his} bed.",
    ),
}
LESSONS = {
    "found": (
        "What is lost can be found when two look for it.",
        "Four eyes see more than two.",
        "And ever since, every search has begun with a laugh.",
    ),
    "pocket": (
        "Sometimes the farthest place is your own pocket.",
        "Whatever was missing after that, they looked there first.",
    ),
    "earned": (
        "Whoever works for a wish has it twice.",
        "A kept word is worth more than a gift.",
        "Never had it been so nice to be tired.",
    ),
    "traded": (
        "A good trade makes two people happy.",
        "Sometimes the best thing is what another has.",
        "Neither of them looked back.",
    ),
    "traded back": (
        "You know what a thing is worth when it is gone.",
        "Sometimes the best trade is no trade.",
        "And nobody spoke of trading for a long time.",
    ),
    "rain": (
        "With a friend, every kind of weather is good weather.",
        "A spoiled plan can make the best day.",
        "Since then, they have never frowned at a cloud.",
    ),
    "secret": (
        "Some secrets are only wrapped presents.",
        "A good secret is worth the wait.",
        "And there was cake, of course.",
    ),
    "kept": (
        "A promise is a small thing that weighs a lot.",
        "Whoever keeps a promise keeps a friend.",
        "The moon came up and seemed to nod.",
    ),
    "forgiven": (
        "A promise can break, and a friendship can hold.",
        "Sorry is a short word that opens doors.",
        "And the next time, the rooster was asked to crow.",
    ),
    "truth": (
        "The truth is light, and a lie is heavy.",
        "It takes courage to say what is true.",
        "The mend can still be seen, and nobody minds.",
    ),
    "shared": (
        "Sharing is twice the fun.",
        "Half a treasure and a whole friend is a good bargain.",
        "And nobody remembers who saw it first.",
    ),
    "watch": (
        "Nobody is lost while a friend keeps watch.",
        "A friend finds a way to call you home.",
        "And there was soup on the table, still warm.",
    ),
    "race": (
        "Those who arrive together win together.",
        "It is better to have a friend than to be first.",
        "And nobody asked any more who was faster.",
    ),
    "brave": (
        "Most monsters are afraid of two friends.",
        "With a hand to hold, anyone can be brave.",
        "Since then, they have gone there just for fun.",
    ),
    "kind": (
        "What you give to a friend comes back.",
        "A cold goes faster when a friend thinks of you.",
        "And the next cold was almost welcome.",
    ),
    "seek": (
        "A friend is worth every search.",
        "Nobody hides for long from a good friend.",
        "Then they swapped places and played again.",
    ),
    "patience": (
        "Good things grow in the dark first.",
        "Waiting is also work.",
        "It was worth every drop.",
    ),
    "trust": (
        "Ask first, and shout later.",
        "A friend deserves a question before a quarrel.",
        "And that was the last time that anybody shouted.",
    ),
}

LITERALS = {
    detail: ("see", {"P": place}) for place, (_, details) in w.PLACES.items() for detail in details
} | {said: ("lesson", {"M": theme}) for theme, lessons in LESSONS.items() for said in lessons}


def _any(options):
    return "(?:" + "|".join(sorted(map(re.escape, options), key=len, reverse=True)) + ")"


WHERE = {w.at(place): place for place in w.PLACES} | {
    w.at(place).capitalize(): place for place in w.PLACES
}
_NAME, _THING, _PLACE = _any(w.KINDS), _any(w.THINGS), _any(w.PLACES)
_VALUES = {
    "K": set(w.KINDS.values()), "K.a": set(map(w.article, w.KINDS.values())), "R": w.TRAITS,
    "F": w.FEELINGS["happy"], "G": w.FEELINGS["sad"],
    "T": [asked for _, asked, _ in w.TASKS.values()], "D": [did for *_, did in w.TASKS.values()],
    "V": [use for use, _ in w.THINGS.values()], "U": [used for _, used in w.THINGS.values()],
    "S": [done for done, _ in w.SIGNALS.values()], "N": {name for _, name in w.SIGNALS.values()},
    "L": w.LOOSE.values(), "I": w.INDOORS.values(), "X": [x for x, _ in w.DARK.values()],
    "C": [c for _, c in w.DARK.values()],
    "P.at": [w.at(p) for p in w.PLACES], "P.At": [w.at(p).capitalize() for p in w.PLACES],
}  # fmt: skip
_PATTERNS = {slot: _any(values) for slot, values in _VALUES.items()} | {
    "P": _PLACE, "P.to": f"to the {_PLACE}",
    **{name + end: pattern for name in "OQ" for end, pattern in
       (("", f"the {_THING}"), (".a", f"an? {_THING}"), (".n", _THING))},
}  # fmt: skip
SLOT = re.compile(r"\{([^}]+)\}")


def _pattern(slot, before):
    """The pattern of a slot, given the template's text before it: who may be he, she or they."""
    if slot in ("A", "B"):
        return _NAME if before else f"(?:{_NAME}|He|She)"
    if slot == "AB":
        return f"(?:{_NAME} and {_NAME}|{'they' if before else 'They'})"
    if slot[0] in "AB":
        return _any({forms[slot[2:]] for forms in w.PRONOUNS.values()})
    return _PATTERNS[slot]


def _compiled(template):
    """A template as a regular expression, and its slots in order."""
    out, slots, end = "", [], 0
    for match in SLOT.finditer(template):
        slots.append(match[1])
        out += re.escape(template[end : match.start()])
        out += f"({_pattern(match[1], template[: match.start()])})"
        end = match.end()
    return re.compile(out + re.escape(template[end:])), slots


_COMPILED = [
    (event, *_compiled(template))
    for event, templates in TEMPLATES.items()
    if event != "see"
    for template in templates
]


@lru_cache(10_000)
def readings(sentence):
    """Give all events that a sentence can mean: pairs of an event and {slot: words}."""
    found = [LITERALS[sentence]] if sentence in LITERALS else []
    for event, pattern, slots in _COMPILED:
        if match := pattern.fullmatch(sentence):
            said = {}
            if all(said.setdefault(s, word) == word for s, word in zip(slots, match.groups())):
                found.append((event, said))
    return found


def sentences(text):
    """Cut a text into its sentences, and what is left over after the last.

    A sentence ends after . ! or ? outside quotation marks, or with a quotation that ends in one of
    these and from which nothing goes on in small letters.
    """
    text = " ".join(text.split())
    parts, start, quoted = [], 0, False
    for i, c in enumerate(text):
        quoted = c == "“" or (quoted and c != "”")
        ends = c in ".!?" and not quoted
        if c == "”" and text[i - 1 : i] in (".", "!", "?"):
            ends = not text[i + 2 : i + 3].islower()
        if ends and text[i + 1 : i + 2] in ("", " "):
            parts.append(text[start : i + 1].strip())
            start = i + 1
    return parts, text[start:].strip()
