"""The world of a story: who is where, who has what, who knows, wants and promised what, and why.

An event changes it, if what the event needs is true; else `Fault` names the rule that it breaks.
What an event needs to have happened before it stands in tables; all else in a method of its name.
"""

from dataclasses import dataclass, field

from tinytf_course.stories import words as w
from tinytf_course.stories.templates import WHERE

HOME = "home"
RULES = {
    "grammar": "The storybook has no such sentence.",
    "known": "A person or a thing has to be introduced, once, before it is spoken of.",
    "pronoun": "He, she and they have to be somebody who can be meant.",
    "owner": "Only a person who has a thing can lose, lend, give or use it.",
    "place": "People act where they are, and meet where both are.",
    "promise": "What is promised is kept, or forgiven, before the story ends.",
    "cause": "What happens needs what it comes from.",
    "feeling": "People are sad or glad for a reason.",
    "speech": "What is said is true, or answers what was said.",
    "plan": "Plans and wishes are carried out as they were made.",
    "ending": "A story begins with somebody, something happens, nothing stays open, and it ends.",
}
# What has to have happened before an event, with the same two people in the same parts …
AS_IN = {
    "promise_help": "tell_lost", "pocket": "no_more", "find_pocket": "no_more", "word": "report",
    "agree": "offer", "not_tell": "ask_hide", "left_out": "not_tell", "come": "birthday",
    "reveal": "birthday", "hooray": "birthday", "promise_back": "lend", "remember": "promise_back",
    "kept": "promise_back", "waited": "oversleep", "sorry_late": "oversleep",
    "forgive_late": "sorry_late", "tempt": "break", "lie": "break", "truth": "break",
    "restless": "lie", "confess": "lie", "forgive": "truth", "no_mine": "mine", "race": "boast",
    "trip": "race", "help_up": "trip", "both_won": "trip", "monster": "dread",
    "look_together": "monster", "water": "plant", "nothing": "plant", "never": "plant",
    "wait": "never", "water_on": "never", "thief": "sees", "explain": "thief",
    "sorry_shout": "explain", "of_course": "sorry_shout", "hides": "play", "not_there": "play",
    "found_you": "play", "miss_too": "miss", "worry": "no_way", "signal": "no_way",
    "follow": "no_way", "visit": "ill", "well": "ill",
}  # fmt: skip
# … or in any parts; and what has not to have happened yet.
AFTER = {
    "find_pocket": "pocket", "pocket": "search", "find": "search", "bloom": "water_on",
    "water_on": "water", "never": "nothing", "tie": "help_up", "both_won": "tie",
    "only": "look_together", "creep": "look_together", "turns": "no_mine", "share": "turns",
    "dull": "mine", "sulk": "no_mine", "mine": "spot", "sneeze": "hides", "not_there": "hides",
    "found_you": "sneeze", "miss": "trade", "trade": "agree", "trade_back": "miss_too",
    "idea": "rain", "clear": "rain", "puddle": "rain", "fun": "idea", "at_last": "clear",
    "hooray": "reveal", "follow": "signal", "sorry_late": "promise_back", "oversleep": "dusk",
    "mend": "truth", "kept": "return",
}  # fmt: skip
TOO_LATE = {
    "promise_back": ("oversleep",), "remember": ("oversleep", "return"), "kept": ("oversleep",),
    "late": ("oversleep",), "asleep": ("oversleep",), "tempt": ("lie", "truth"),
    "lie": ("truth",), "restless": ("truth",), "confess": ("truth",), "boast": ("tie",),
    "trip": ("help_up",), "play": ("hides",), "not_there": ("found_you",), "left_out": ("reveal",),
}  # fmt: skip
OPEN = {"hides": "found_you", "spot": "share", "race": "tie"}  # what has to end before the story
# What is said to the other, who has to be there to hear it; and what may be done from afar.
SAID = {
    "ask_why", "tell_lost", "promise_help", "pocket", "may_i", "bargain", "report", "word", "offer",
    "agree", "idea", "puddle", "ask_hide", "not_tell", "come", "reveal", "may_borrow",
    "promise_back", "kept", "sorry_late", "forgive_late", "lie", "truth", "confess", "forgive",
    "mine", "no_mine", "sulk", "dull", "turns", "boast", "race", "both_won", "monster",
    "look_together", "visit", "play", "never", "wait", "thief", "explain", "sorry_shout",
    "of_course", "laugh", "spot",
}  # fmt: skip
APART = {
    "friend", "meet", "made", "birthday", "back", "hides", "sees", "miss", "worry", "follow",
    "waited", "left_out", "found_you", "trade_back",
}  # fmt: skip
NEW = {"open_own", "open_want", "made", "spot"}  # where "a kite" is not one that is known
IN_BED = {"sad", "glad", "thank", "ask_why", "visit", "give", "well", "laugh", "use"}
AGAIN = {  # what can happen more than once
    "has", "has_home", "brought", "see", "go", "go_both", "take", "back", "use", "sad", "glad",
    "thank", "give", "laugh", "offer", "lose", "find", "search", "tell_lost", "promise_help",
    "ask_why",
}  # fmt: skip
DAYS = {"well", "miss", "rain", "clear", "nothing", "bloom", "gone"}  # these take a night or more
DAYLIGHT = {"errand", "task", "lend", "promise_back", "kept", "dusk", "late"}  # for the day


class Fault(Exception):
    """An event that makes no sense: the rule it breaks, and why."""

    def __init__(self, rule, why):
        super().__init__(f"{rule}: {why}")
        self.rule, self.why = rule, why


@dataclass
class Person:
    """Somebody: what kind, where, in what mood and why."""

    kind: str
    trait: str
    place: str = HOME
    mood: str = ""
    why: str = ""


@dataclass
class Thing:
    """Something: whose it is, who has it, else where it lies, and what is the matter with it."""

    owner: str = ""
    holder: str = ""
    place: str = ""
    state: str = ""  # lost, broken, secret, gone
    at_home: bool = False  # though its holder may be out


@dataclass
class Event:
    """What happens: its people's parts (a and b), things, place, and the words of its slots."""

    name: str
    a: str
    b: str
    o: str | None
    q: str | None
    p: str | None
    words: dict


@dataclass
class World:
    """All that a story has said so far."""

    people: dict = field(default_factory=dict)
    things: dict = field(default_factory=dict)
    wants: dict = field(default_factory=dict)  # name -> thing
    promises: list = field(default_factory=list)  # (who, what, thing or task)
    plan: tuple = ()  # (place, thing)
    going: str = ""  # where somebody has said that they will go
    raining: bool = False
    night: bool = False
    asked: tuple = ()  # the last question that waits for an answer
    happened: dict = field(default_factory=dict)  # event -> its people, (a, b)
    been: set = field(default_factory=set)  # (who, where)
    themes: set = field(default_factory=set)  # what the story can teach
    subject: str = ""  # of whom the last sentence spoke
    last: tuple = ()  # what it said
    ended: bool = False
    present: str = ""  # the thing that is to be given
    signal: str = ""  # the thing that shows the way home
    traded: tuple = ()  # the two things
    pocketed: str = ""  # the thing that is in a pocket
    unseen: bool = False  # whether nobody saw it break
    told: str = ""  # the lost thing that was spoken of last
    bargained: tuple = ()  # who is to get what for a task
    broke_word: bool = False  # whether what was promised before dark came later

    # ---- what a sentence speaks of

    def apply(self, name, slots):
        """Let an event happen; raises Fault, and may then have changed in part."""
        need(not self.ended, "ending", "the story goes on after its end")
        need(self.people or name.startswith("open"), "ending", "a story begins with somebody")
        who = self._people_of(name, slots)
        a, b = self._parts(name, who)
        o, q = (self._thing(slots, slot, name) for slot in "OQ")
        p = next((WHERE.get(v, v.split()[-1]) for k, v in slots.items() if k[0] == "P"), None)
        self._in_order(name, a, b)
        if ({"A", "B"} <= who.keys() and name not in APART) or name in SAID:
            self._together()
        for ill in self._during("ill", "well")[1:]:
            need(ill not in who.values() or name in IN_BED, "place", f"{ill} is ill in bed")
        need((name, slots) != self.last, "cause", "that has just been said")
        do = getattr(self, f"_{name}", None)
        if do is not None:
            do(Event(name, a, b, o, q, p, slots))
        self.last, self.happened[name] = (name, slots), (a, b)
        self.been |= {(who, person.place) for who, person in self.people.items()}
        self.wants = {who: noun for who, noun in self.wants.items() if not self._owns(who, noun)}
        self.subject = "" if "AB" in slots else who.get("A") or who.get("B") or self.subject

    def _in_order(self, name, a, b):
        """What has to come before it has, and nothing that can't."""
        need(name in AGAIN or name not in self.happened, "cause", "that has been said")
        for earlier in filter(None, (AS_IN.get(name), AFTER.get(name))):
            needed = f"it needs {earlier.replace('_', ' ')!r} before it"
            need(earlier in self.happened, "cause", needed)
        if name in AS_IN:
            then = self.happened[AS_IN[name]]
            then = (then[0], then[1] or self.other(then[0]))  # who came later
            rule = "speech" if name in SAID else "cause"
            need((a, b) == then, rule, f"it should be {' and '.join(then)}, not {a} and {b}")
        for later in TOO_LATE.get(name, ()):
            need(later not in self.happened, "cause", f"it comes after {later.replace('_', ' ')!r}")
        if name in DAYS:
            lent = any(what == "return" for _, what, _ in self.promises)
            need(not lent, "promise", "it is long after dark")
        if name in DAYLIGHT:
            need(not self.night, "cause", "it is dark")

    def _during(self, begin, end):
        """The people of what has begun and not ended, () if there is nothing."""
        return self.happened.get(begin, ()) if end not in self.happened else ()

    def told_holder(self, noun):
        """Who has a thing, as far as the story has told it: a name, "both", or ""."""
        thing = self.things[noun]
        if thing.state == "gone" and "sees" not in self.happened:
            return ""
        return "both" if thing.owner == "both" else thing.holder

    def other(self, name):
        """The other person, "" if there is none."""
        return next((n for n in self.people if n != name), "")

    def _parts(self, name, who):
        """A and B: whoever is not named is the other one, or has the part that they had before."""
        if not who:
            return self.happened.get(AS_IN.get(name), ("", ""))
        a = who.get("A") or self.other(who["B"])
        return a, who.get("B") or self.other(a)

    def _people_of(self, event, slots):
        """Names for A and B, as introduced or referred to."""
        new = "A" if event.startswith("open") else "B" if event in ("friend", "meet") else ""
        who = {}
        for slot in "AB":
            if slot == new:
                kind = slots.get("K", slots.get("K.a", "")).split()[-1]
                who[slot] = self._introduce(slots[slot], kind, slots.get("R", ""))
            elif slot in slots:
                who[slot] = self._person(slots[slot])
        if "AB" in slots:
            need(len(self.people) == 2, "pronoun", "there are not two people yet")
            names = slots["AB"].split(" and ")
            if len(names) == 2:
                need(names[0] != names[1], "known", f"{names[0]} and {names[1]} are one")
                names = [self._person(name) for name in names]
            else:
                names = list(self.people)
            self._together()
            who = who or dict(zip("AB", names))
        for slot, said in slots.items():
            if slot[0] in "AB" and slot[1:2] == ".":
                meant = self._of_gender(said, w.PRONOUNS["m"][slot[2:]])
                name = who.setdefault(slot[0], meant)
                need(name == meant, "pronoun", f"{said} can not be {name}")
        need(len(set(who.values())) == len(who), "known", "one person can not be two")
        return who

    def _introduce(self, name, kind, trait):
        need(name in w.KINDS, "pronoun", f"{name}: a newcomer needs a name")
        need(name not in self.people, "known", f"{name} is introduced twice")
        need(len(self.people) < 2, "known", "a story has two people")
        need(kind == w.KINDS[name], "known", f"{name} is not a {kind}")
        for there in self.people:
            need(w.GENDER[there] != w.GENDER[name], "pronoun", f"{there} or {name}?")
        place = self.people[next(iter(self.people))].place if self.people else HOME
        self.people[name] = Person(kind, trait, place)
        return name

    def _person(self, said):
        if said in w.KINDS:
            need(said in self.people, "known", f"{said} was not introduced")
            return said
        return self._of_gender(said.lower(), "he")

    def _of_gender(self, said, male):
        """Whom a pronoun means: `male` is its male form."""
        gender = "m" if said == male else "f"
        meant = next((name for name in self.people if w.GENDER[name] == gender), None)
        need(meant, "pronoun", f"{said}: nobody can be meant")
        return meant

    def _thing(self, slots, slot, event):
        said = next((slots[s] for s in (slot, f"{slot}.a", f"{slot}.n") if s in slots), None)
        if said is None:
            return None
        noun = said.split()[-1]
        if f"{slot}.a" in slots:
            need(said == w.article(noun), "grammar", f"{said!r} is no English")
            if event in NEW:
                new = self.things.get(noun, Thing()) == Thing()
                need(new, "known", f"the {noun} is not new")
            self.things.setdefault(noun, Thing())
        need(noun in self.things, "known", f"there is no {noun}")
        return noun

    # ---- what several events need, and change

    def _feel(self, name, mood, why):
        self.people[name].mood, self.people[name].why = mood, why

    def _all_feel(self, mood, why):
        for name in self.people:
            self._feel(name, mood, why)

    def _owns(self, name, noun):
        return noun in self.things and self.things[noun].owner in (name, "both")

    def _holds(self, name, noun):
        thing = self.things[noun]
        shared = thing.owner == "both" and not thing.state
        need(thing.holder == name or shared, "owner", f"{name} does not have the {noun}")
        if thing.at_home:
            need(self.people[name].place == HOME, "place", f"the {noun} is at home")

    def _is(self, noun, *states):
        """A thing is lost, broken, …; or, with no state, nothing is the matter with it."""
        state = self.things[noun].state
        why = f"the {noun} is {state or 'not ' + ' or '.join(states)}"
        need(state in (states or ("",)), "cause", why)

    def _in_state(self, state):
        return [noun for noun, thing in self.things.items() if thing.state == state]

    def _at(self, name, place):
        there = self.people[name].place
        need(there == place, "place", f"{name} is {where(there)}, not {where(place)}")

    def _together(self):
        need(len(self.people) == 2, "speech", "nobody else is there")
        (a, here), (b, there) = ((name, person.place) for name, person in self.people.items())
        need(here == there, "place", f"{a} is {where(here)}, {b} {where(there)}")

    def _hand(self, noun, name):
        thing = self.things[noun]
        thing.holder, thing.place, thing.at_home = name, "", False

    def _fulfil(self, who, what):
        self.promises = [p for p in self.promises if p[:2] != (who, what)]

    def _has_promised(self, who, what):
        return any(p[:2] == (who, what) for p in self.promises)

    def _use_of(self, e):
        if "V" in e.words:
            need(e.words["V"] == w.THINGS[e.o][0], "cause", f"a {e.o} is not for that")

    def _leave_for(self, name, place):
        there = self.people[name].place
        need(name not in self._during("no_way", "follow")[:1], "place", f"{name} is lost")
        need(name not in self._during("hides", "found_you")[1:], "plan", f"{name} is hiding")
        need(there != place, "place", f"{name} is there")
        need(self.going in ("", place), "plan", f"it was said that they go to {self.going}")
        afraid = self.plan == (place, "") and name == self.happened["dread"][0]
        need(not afraid or self.going, "cause", f"{name} does not dare to go there")
        self.people[name].place = place

    def _invite(self, place):
        need(not self.going, "plan", f"it was said that they go to {self.going}")
        self.going = place if any(x.place != place for x in self.people.values()) else ""

    # ---- who there is, what they have and where they go

    def _open_own(self, e):
        self.things[e.o] = Thing(e.a, e.a)

    def _open_want(self, e):
        self.wants[e.a] = e.o
        self._feel(e.a, "sad", f"wanted the {e.o}")
        self._use_of(e)

    def _friend(self, e):
        need(e.a, "known", "whose friend?")
        self._at(e.a, HOME)

    def _meet(self, e):
        need(e.a, "known", "who met?")
        need(self.people[e.a].place != HOME, "place", f"{e.a} is still at home")

    def _has(self, e):
        need(self.wants.get(e.b) != e.o, "plan", f"{e.b} wished for the {e.o}")
        thing = self.things[e.o]
        need(not (thing.place or thing.owner), "owner", f"the {e.o} has an owner or lies there")
        self.things[e.o] = Thing(e.b, e.b)

    def _has_home(self, e):
        self._at(e.b, HOME)
        self._has(e)
        self.things[e.o].at_home = True

    def _brought(self, e):
        need(self.people[e.b].place != HOME, "place", f"{e.b} is at home")
        self._has(e)

    def _want(self, e):
        need(self.things[e.o].holder != e.a, "plan", f"{e.a} has the {e.o}")
        self.wants[e.a] = e.o
        self._use_of(e)

    def _go(self, e):
        self._leave_for(e.a, e.p)
        if len({person.place for person in self.people.values()}) == 1:
            self.going = ""

    def _go_both(self, e):
        for name in (e.a, e.b):
            self._leave_for(name, e.p)
        self.going = ""

    _creep = _go_both

    def _take(self, e):
        self._holds(e.a, e.o)
        self.things[e.o].at_home = False
        self._go(e)

    def _errand(self, e):
        need(e.p in w.OUTDOORS, "place", f"one can not do that at the {e.p}")
        self._go(e)

    def _back(self, e):
        here, there = self.people[e.a].place, self.people[e.b].place
        need(here not in (HOME, there), "place", f"{e.a} is {where(here)}, {e.b} {where(there)}")
        self._leave_for(e.a, there)

    def _see(self, e):
        self._at(self.subject or next(iter(self.people)), e.p)

    # ---- feelings

    def _sad(self, e):
        need(self.people[e.a].mood == "sad", "feeling", f"{e.a} has no reason to be sad")

    def _glad(self, e):
        need(self.people[e.a].mood == "happy", "feeling", f"{e.a} has no reason to be happy")

    def _sad_both(self, e):
        for person in self.people.values():
            need(person.mood == "sad", "feeling", "they have no reason to be sad")

    def _laugh(self, e):
        funny = {"only", "find_pocket", "puddle", "found_you", "tie"} & set(self.happened)
        need(funny, "cause", "nothing was funny")
        sad = [name for name, person in self.people.items() if person.mood == "sad"]
        need(not sad, "feeling", f"{' and '.join(sad)} can not laugh")

    def _thank(self, e):
        helped = self._has_promised(e.b, "help") or self.happened.get("forgive") == (e.a, e.b)
        glad = self.people[e.a].mood == "happy"
        need(glad or helped, "feeling", f"{e.a} has nothing to thank for")

    def _use(self, e):
        noun = next(noun for noun, (_, used) in w.THINGS.items() if used == e.words["U"])
        need(noun in self.things, "known", f"there is no {noun}")
        self._holds(e.a, noun)
        self._is(noun)
        out = self.people[e.a].place not in w.INDOORS and not self.raining
        need(out or noun not in w.FOR_OUTSIDE, "place", f"the {noun} is for outside")
        ill = e.a in self._during("ill", "well")
        need(not ill or noun in w.COMFORTS, "place", f"{e.a} is ill in bed")

    # ---- lost and found

    def _lose(self, e):
        self._holds(e.a, e.o)
        here = self.people[e.a].place
        need(here in w.OUTDOORS, "place", f"{e.a} is {where(here)}")
        self.things[e.o] = Thing(self.things[e.o].owner, "", here, "lost")
        self._feel(e.a, "sad", f"lost the {e.o}")
        self.happened.pop("search", None)

    def _no_more(self, e):
        need(e.o in w.POCKET, "place", f"a {e.o} is too big to slip out of sight")
        self._lose(e)
        self.pocketed = e.o

    def _ask_why(self, e):
        need(self.people[e.a].mood == "sad", "feeling", f"{e.a} is not sad")

    def _tell_lost(self, e):
        self._is(e.o, "lost")
        need(self.things[e.o].owner == e.a, "owner", f"it is not the {e.o} of {e.a}")
        losers = (self.happened.get(lost, ("",))[0] for lost in ("lose", "no_more"))
        need(e.a in losers, "speech", f"{e.a} has not lost it")
        need(self.told != e.o, "speech", "that has been said")
        self.told = e.o

    def _promise_help(self, e):
        others = [noun for noun in self._in_state("lost") if self.things[noun].owner != e.b]
        need(others, "speech", f"{e.b} can not help to find anything")
        if not self._has_promised(e.b, "help"):
            self.promises.append((e.b, "help", ""))

    def _search(self, e):
        lost = self._in_state("lost")
        need(lost, "cause", "nothing is lost")
        need(e.o in (None, *lost), "cause", f"the {e.o} is not lost")
        here = self.people[e.a].place
        there = {self.things[noun].place for noun in ([e.o] if e.o else lost)}
        need(here in there, "place", f"it was not lost {where(here)}")
        for name in self.people:
            self._fulfil(name, "help")

    def _find(self, e):
        self._is(e.o, "lost")
        need(e.o != self.pocketed, "place", f"the {e.o} is in a pocket")
        self._at(e.a, self.things[e.o].place)
        need(e.p in (None, self.things[e.o].place), "place", f"the {e.o} is not at {e.p}")
        self._found(e)
        self.themes.add("found")

    def _found(self, e):
        self._hand(e.o, e.a)
        self.things[e.o].state = ""
        if self.things[e.o].owner == e.a:
            self._feel(e.a, "happy", f"found the {e.o}")

    def _pocket(self, e):
        self._is(self.pocketed, "lost")

    def _find_pocket(self, e):
        need(e.o == self.pocketed, "place", f"the {e.o} is in no pocket")
        self._is(e.o, "lost")
        self._found(e)
        self.themes.add("pocket")

    def _give(self, e):
        self._holds(e.a, e.o)
        self._is(e.o)
        thing, promised = self.things[e.o], self._has_promised(e.a, "give")
        for who, what, task in self.promises:
            if (who, what) == (e.a, "give"):
                need(task in ("", *self.happened), "promise", "the task is not done")
        ill = e.b in self._during("ill", "well")
        reasons = (
            thing.owner == e.b,
            self.bargained == (e.b, e.o),
            self.present == e.o and (ill or promised),
        )
        need(any(reasons), "cause", f"why would {e.a} give {e.b} the {e.o}?")
        if (e.a, "return", e.o) in self.promises:
            return self._return(e)
        if not ill:
            thing.owner = e.b
        self._hand(e.o, e.b)
        self._feel(e.b, "happy", f"got the {e.o}")
        if e.o in (self.present, *self.bargained[1:]):
            self._fulfil(e.a, "give")
        if self.bargained == (e.b, e.o):
            self.themes.add("earned")
        if "gone" in self.happened:
            self.themes.add("trust")

    # ---- a wish and a trade

    def _own_and_have(self, name, noun):
        self._is(noun)
        self._holds(name, noun)
        need(self.things[noun].owner == name, "owner", f"it is not the {noun} of {name}")

    def _may_i(self, e):
        self._own_and_have(e.b, e.o)
        self.asked = (e.a, "may I", e.o)

    def _bargain(self, e):
        need(self.asked[:2] == (e.a, "may I"), "speech", f"nobody asked {e.b}")
        need(e.o in (None, self.asked[2]), "speech", f"nobody asked for the {e.o}")
        self.promises.append((e.b, "give", e.words["T"]))
        self.bargained, self.asked = (e.a, self.asked[2]), ()

    def _task(self, e):
        place, asked, _ = next(task for task in w.TASKS.values() if task[2] == e.words["D"])
        need((e.b, "give", asked) in self.promises, "cause", "nobody asked for it")
        self._at(e.a, place)
        self.happened[asked] = (e.a, e.b)

    def _report(self, e):
        asked = next(asked for _, asked, did in w.TASKS.values() if did == e.words["D"])
        done = self.happened.get(asked) == (e.a, e.b)
        need(done, "speech", f"{e.a} did not do that")

    def _word(self, e):
        need(any(p[0] == e.b for p in self.promises), "promise", f"{e.b} has promised nothing")

    def _offer(self, e):
        self._own_and_have(e.a, e.o)
        self._own_and_have(e.b, e.q)
        self.happened.pop("agree", None)
        self.asked = (e.a, e.o, e.q)

    def _agree(self, e):
        need(len(self.asked) == 3, "speech", f"nobody asked {e.b}")

    def _trade(self, e):
        need((e.a, e.o, e.q) == self.asked, "speech", "that was not offered")
        self._swap(e.a, e.b, e.o, e.q)
        self.themes.add("traded")
        self.traded, self.asked = (e.o, e.q), ()

    def _swap(self, a, b, o, q):
        self._holds(a, o)
        self._holds(b, q)
        for name, noun in ((a, q), (b, o)):
            self.things[noun].owner = name
            self._hand(noun, name)
            self._feel(name, "happy", f"got the {noun}")

    def _misses(self, name, noun):
        need(noun in self.traded, "cause", f"the {noun} was not traded")
        need(self.things[noun].owner not in ("", name), "owner", f"the {noun} is with {name}")
        self._feel(name, "sad", f"missed the {noun}")

    def _miss(self, e):
        self._misses(e.a, e.o)
        self.themes.discard("traded")
        for person in self.people.values():  # it is night
            person.place = HOME

    def _miss_too(self, e):
        self._misses(e.b, e.q)

    def _trade_back(self, e):
        self._swap(e.b, e.a, e.o, e.q)
        self.themes = {"traded back"}

    # ---- rain

    def _plan(self, e):
        self._is(e.o)
        need(not self.plan, "plan", "there is another plan")
        need(self.things[e.o].holder in (e.a, e.b), "owner", f"they have no {e.o}")
        need(e.p in w.OUTDOORS, "plan", f"one can not do that at the {e.p}")
        self.plan = (e.p, e.o)

    def _rain(self, e):
        need(self.plan[1:] and self.plan[1] in self.things, "cause", "the rain would spoil nothing")
        need(e.o in (None, self.plan[1]), "place", f"the {e.o} stayed at home")
        self.raining = True
        self._all_feel("sad", "it rained")

    def _idea(self, e):
        need(e.p in w.INDOORS, "plan", f"it rains into the {e.p}")
        self._invite(e.p)

    def _fun(self, e):
        need(self.raining, "cause", "it does not rain")
        place = next(place for place, fun in w.INDOORS.items() if fun == e.words["I"])
        self._at(e.a, place)
        self._had_fun("rain")

    def _had_fun(self, theme):
        self._all_feel("happy", "it was fun")
        self.themes.add(theme)

    def _puddle(self, e):
        need(self.people[e.b].place not in w.INDOORS, "place", "there are no puddles")
        need(self.raining and self.plan[1:] == ("boat",), "cause", "there is no rain or no boat")
        self.plan = ()
        self._had_fun("rain")

    def _clear(self, e):
        self.raining = self.night = False
        for person in self.people.values():
            person.place = HOME

    def _at_last(self, e):
        need(self.things[e.o].holder in (e.a, e.b), "owner", f"they do not have the {e.o}")
        need((e.p, e.o) == self.plan, "plan", "that was not the plan")
        self.plan = ()
        for person in self.people.values():
            person.place = e.p
        self._all_feel("happy", "the plan came true")

    # ---- a secret

    def _made(self, e):
        self.things[e.o] = Thing(e.a, e.a, "", "secret")
        self.promises.append((e.a, "give", ""))

    def _hide(self, e):
        self._is(e.o, "secret")
        self._holds(e.a, e.o)
        if e.b:
            need(self.people[e.b].place != e.p, "place", f"{e.b} is there, too")
        self.things[e.o].holder, self.things[e.o].place = "", e.p

    def _keeps(self, name, where=None):
        """Whether somebody has a secret thing, hidden there if a place is given."""
        hid = (self.things[noun] for noun in self._in_state("secret"))
        need(any(t.owner == name and where in (None, t.place) for t in hid), "cause",
             f"{name} has no such secret")  # fmt: skip

    def _ask_hide(self, e):
        self._keeps(e.a)
        need("hide" in self.happened, "cause", "nothing is hidden")

    def _not_tell(self, e):
        self._keeps(e.a)
        self._feel(e.b, "sad", "was left out")

    def _left_out(self, e):
        need(self.people[e.b].why == "was left out", "feeling", f"{e.b} was not left out")

    def _birthday(self, e):
        self._keeps(e.a)

    def _come(self, e):
        self._keeps(e.a, e.p)
        self._invite(e.p)

    def _reveal(self, e):
        self._is(e.o, "secret")
        self._keeps(e.a, self.people[e.a].place)
        self._at(e.a, self.things[e.o].place)
        self._hand(e.o, e.a)
        self.things[e.o].state = ""
        self.themes.add("secret")
        self.present = e.o

    # ---- something borrowed

    def _may_borrow(self, e):
        self._own_and_have(e.b, e.o)
        self.asked = (e.a, "borrow", e.o)

    def _lend(self, e):
        need(self.asked == (e.a, "borrow", e.o), "speech", f"{e.a} did not ask for it")
        self._holds(e.b, e.o)
        self._hand(e.o, e.a)
        self.promises.append((e.a, "return", e.o))
        self.asked = ()
        self._feel(e.a, "happy", f"got the {e.o}")

    def _promise_back(self, e):
        need(self._has_promised(e.a, "return"), "speech", f"{e.a} has borrowed nothing")

    def _late(self, e):
        self._dusk(e)
        self.night = True

    def _dusk(self, e):
        need(any(x.place != HOME for x in self.people.values()), "place", "all are at home")

    def _return(self, e):
        self._holds(e.a, e.o)
        self._is(e.o)
        need(self.things[e.o].owner == e.b, "owner", f"it is not the {e.o} of {e.b}")
        need(e.a not in self._during("ill", "well"), "cause", f"{e.a} is still ill")
        self._hand(e.o, e.b)
        self._fulfil(e.a, "return")
        self._feel(e.a, "happy", "all was well again")
        self._feel(e.b, "happy", f"got the {e.o} back")
        late = self.night or "oversleep" in self.happened
        if self.present == e.o and "well" in self.happened:
            self.themes.add("kind")
        elif self.happened.get("promise_back") == (e.a, e.b):
            self.broke_word = late
            if not late and "break" not in self.happened:
                self.themes.add("kept")

    def _oversleep(self, e):
        need(self._has_promised(e.a, "return"), "cause", f"{e.a} has nothing to forget")
        here, there = self.people[e.a].place, self.people[e.b].place
        need(here not in (HOME, there), "place", f"{e.a} is {where(here)}, {e.b} {where(there)}")
        self._feel(e.b, "sad", f"waited for {e.a}")
        self._feel(e.a, "sad", "was late")

    def _waited(self, e):
        self._at(e.b, HOME)
        need(self.people[e.a].place != HOME, "place", "they are together")

    def _forgive_late(self, e):
        self.themes.add("forgiven")
        self._feel(e.b, "happy", "all was well again")

    def _break(self, e):
        self._is(e.o)
        self._holds(e.a, e.o)
        need(self.things[e.o].owner != e.a, "cause", f"the {e.o} belongs to {e.a}")
        need(e.o in w.BREAKS, "cause", f"a {e.o} does not break")
        self.unseen = bool(e.b) and self.people[e.b].place != self.people[e.a].place
        self.things[e.o].state = "broken"
        self._feel(e.a, "sad", f"broke the {e.o}")

    def _tempt(self, e):
        need(self.unseen, "speech", "it was seen")

    def _lie(self, e):
        need(self.unseen, "speech", "it was seen")
        self._is(e.o, "broken")

    def _truth(self, e):
        self._is(e.o, "broken")
        self._feel(e.b, "sad", f"the {e.o} was broken")
        self.themes.add("truth")

    def _confess(self, e):
        self._truth(e)
        self.happened["truth"] = (e.a, e.b)

    def _mend(self, e):
        self._is(e.o, "broken")
        thing = self.things[e.o]
        need(thing.holder in (e.a, e.b), "owner", f"{e.a} does not have the {e.o}")
        thing.state = ""
        self._feel(thing.owner, "happy", f"the {e.o} was mended")

    # ---- a quarrel

    def _spot(self, e):
        here = next(iter(self.people.values())).place
        need(here != HOME, "place", "they are at home")
        need(not self.things[e.o].owner, "owner", f"the {e.o} has an owner")
        self.things[e.o].place = here

    def _quarrel(self, e):
        here = next(iter(self.people.values())).place
        free = [n for n, thing in self.things.items() if not thing.owner and thing.place == here]
        need(free, "cause", "there is nothing to quarrel about")
        need(e.o in (None, *free), "cause", f"the quarrel is not about the {e.o}")

    _mine = _turns = _sulk = _dull = _quarrel

    def _no_mine(self, e):
        self._quarrel(e)
        self._all_feel("sad", "they had quarrelled")

    def _share(self, e):
        self._quarrel(e)
        self.things[e.o] = Thing("both", e.a)
        self._all_feel("happy", f"had the {e.o}")
        self.themes.add("shared")

    # ---- lost in the dark

    def _no_way(self, e):
        need(self.night, "cause", "it is not dark")
        need(self.people[e.a].place != HOME, "place", f"{e.a} is at home")
        self._feel(e.a, "sad", "was lost")

    def _afraid(self, e):
        lost = e.a in self._during("no_way", "follow")[:1]
        need(lost, "feeling", f"{e.a} has nothing to fear")

    def _worry(self, e):
        self._afraid(e)
        self._at(e.b, HOME)
        self._feel(e.b, "sad", f"{e.a} was not home")

    def _signal(self, e):
        noun = next(noun for noun, (done, _) in w.SIGNALS.items() if done == e.words["S"])
        need(noun in self.things, "known", f"there is no {noun}")
        self._holds(e.b, noun)
        self._at(e.b, HOME)
        self.signal = noun

    def _follow(self, e):
        name = e.words["N"]
        need(name == w.SIGNALS[self.signal][1], "cause", f"there is no {name}")
        self._at(e.b, HOME)
        self.people[e.a].place = HOME
        self._feel(e.a, "happy", "was home")
        self._feel(e.b, "", "")
        self.themes.add("watch")

    # ---- a race, and a monster

    def _boast(self, e):
        need(self.people[e.a].trait != "shy", "feeling", f"{e.a} is shy, and does not boast")

    def _race(self, e):
        need(self.people[e.b].place != e.p, "place", f"they are at the {e.p}")
        self._invite(e.p)

    def _trip(self, e):
        need(self.going, "cause", "nobody is running")
        self._feel(e.a, "sad", "had fallen")

    def _help_up(self, e):
        need(self.going, "cause", "nobody is running")
        self._feel(e.a, "happy", f"{e.b} helped")

    def _tie(self, e):
        need(self.going == e.p, "plan", "that was not the race")
        self._go_both(e)
        self.themes.add("race")

    def _dread(self, e):
        need((e.a, e.p) not in self.been, "speech", f"{e.a} has been there")
        need(not self.plan, "plan", "there is another plan")
        noise = e.words["X"]
        need(w.DARK.get(e.p, "")[:1] == (noise,), "cause", f"nothing {noise} at the {e.p}")
        need(self.people[e.a].trait != "brave", "feeling", f"{e.a} is brave")
        self._feel(e.a, "sad", f"was afraid of the {e.p}")
        self.plan = (e.p, "")

    def _monster(self, e):
        need(self.plan == (e.p, ""), "place", f"{e.a} is not afraid of the {e.p}")

    def _look_together(self, e):
        need(self.plan[1:] == ("",), "cause", "nobody is afraid any more")
        self._invite(self.plan[0])

    def _only(self, e):
        need(self.plan[1:] == ("",), "cause", "nobody is afraid any more")
        place, what = self.plan[0], e.words["C"]
        need(w.DARK[place][1] == what, "cause", f"that was not at the {place}")
        for name in self.people:
            self._at(name, place)
        self._all_feel("happy", "there was no monster")
        self.plan = ()
        self.themes.add("brave")

    # ---- ill in bed, and hide and seek

    def _ill(self, e):
        need(e.a, "known", "a story has two people")
        self._at(e.b, HOME)
        self._feel(e.b, "sad", "was ill")

    def _visit(self, e):
        need("well" not in self.happened, "speech", f"{e.b} is well")
        self._own_and_have(e.a, e.o)
        self.present = e.o

    def _well(self, e):
        if "visit" in self.happened:
            given = self.things[self.present].holder == e.b
            need(given, "promise", f"the {self.present} was not given")
        self._feel(e.b, "happy", "was well again")

    def _hides(self, e):
        need(e.p not in (self.people[x].place for x in (e.a, e.b)), "place", "somebody is there")
        self.people[e.b].place = e.p

    def _not_there(self, e):
        there = self.people[e.b].place
        need(there != e.p, "place", f"{e.b} is there")
        need({there, e.p} in w.NEAR, "place", f"the {e.p} is far from the {there}")
        self.people[e.a].place = e.p

    def _sneeze(self, e):
        hidden = self.people[self.happened["hides"][1]].place
        need(hidden == e.p, "place", f"nobody is at the {e.p}")
        self.going = e.p

    def _found_you(self, e):
        self.people[e.a].place, self.going = self.people[e.b].place, ""
        self._had_fun("seek")

    # ---- a seed

    def _plant(self, e):
        need(self.people[e.a].place in (HOME, e.p), "place", f"{e.a} is not there")
        need(not self.plan, "plan", "there is another plan")
        need(e.p in w.PLANTED, "place", f"nothing grows at the {e.p}")
        self.plan = (e.p, "seed")

    def _seed(self, e):
        need(self.plan[1:] == ("seed",), "cause", "it has come up")

    _water = _never = _seed

    def _nothing(self, e):
        self._seed(e)
        self._feel(e.a, "sad", "nothing came up")

    def _water_on(self, e):
        need("wait" in self.happened, "cause", f"{e.a} has given up")

    def _bloom(self, e):
        need(self.plan == (e.p, "seed"), "place", f"nothing was planted at the {e.p}")
        self.plan = ()
        self._feel(self.happened["plant"][0], "happy", "the seed had come up")
        self.themes.add("patience")

    # ---- a suspicion

    def _gone(self, e):
        owner = e.a or self.things[e.o].holder
        need(owner in self.people, "owner", f"nobody has the {e.o}")
        self._own_and_have(owner, e.o)
        taken = e.o in w.LOOSE and self.other(owner)
        need(taken, "cause", f"nobody can have taken the {e.o}")
        self.things[e.o] = Thing(owner, self.other(owner), "", "gone")
        self._feel(owner, "sad", f"the {e.o} was gone")

    def _sees(self, e):
        self._is(e.o, "gone")
        self._holds(e.b, e.o)
        self.people[e.a].place = self.people[e.b].place = e.p

    def _thief(self, e):
        need(e.o in (None, *self._in_state("gone")), "speech", f"the {e.o} is not gone")

    def _explain(self, e):
        for noun in self._in_state("gone"):
            need(w.LOOSE[noun] == e.words["L"], "cause", f"a {noun} has no {e.words['L']}")
            self.things[noun].state, self.present = "", noun
            self.promises.append((e.b, "give", ""))

    # ---- the end

    def _finish(self):
        need(len(self.people) == 2, "ending", "there is only one person")
        need(not self.promises, "promise", "a promise is still open")
        forgiven = not self.broke_word or "forgive_late" in self.happened
        need(forgiven, "promise", "a broken promise is not forgiven")
        need(not self.wants, "ending", "a wish is still open")
        need(not self.plan and not self.going, "ending", "a plan is still open")
        need(not self.asked, "ending", "a question is still open")
        for begun, end in (*OPEN.items(), ("ill", "well"), ("no_way", "follow")):
            need(not self._during(begun, end), "ending", f"{begun.replace('_', ' ')!r} is open")
        for noun, thing in self.things.items():
            need(not thing.state, "ending", f"the {noun} is still {thing.state}")
            need(thing.holder in (thing.owner, *self.people), "ending", f"where is the {noun}?")
            need(thing.owner in (thing.holder, "both"), "ending", f"the {noun} is not given back")
        need(self.themes, "ending", "nothing has happened")
        self.ended = True

    def _friends(self, e):
        self._finish()
        need("meet" in self.happened, "ending", f"{e.a} and {e.b} have been friends before")

    def _better(self, e):
        self._finish()
        need("friend" in self.happened, "ending", f"{e.a} and {e.b} had only just met")

    def _asleep(self, e):
        self._finish()
        need(self.people[e.a].mood != "sad", "feeling", f"{e.a} is sad")

    def _homeward(self, e):
        self._asleep(e)
        need(self.people[e.a].place != HOME, "place", f"{e.a} is at home")
        self.people[e.a].place = HOME

    def _tight(self, e):
        self._finish()
        self._holds(e.a, e.o)
        need({"found", "pocket", "earned"} & self.themes, "ending", "nothing was won or lost")

    def _lesson(self, e):
        self._finish()
        need(e.words["M"] in self.themes, "ending", "that does not follow")


def need(true, rule, why):
    """Raise Fault unless it is true."""
    if not true:
        raise Fault(rule, why)


def where(place):
    """Say where: "at home" or "by the river"."""
    return "at home" if place == HOME else w.at(place)
