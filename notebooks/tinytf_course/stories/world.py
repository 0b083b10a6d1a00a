"""The world of a story: who is where, who has what, who knows, wants and promised what, and why.

An event changes it, if what the event needs is true; else `Fault` names the rule that it breaks.
"""

from dataclasses import dataclass, field

from tinytf_course.stories import words as w
from tinytf_course.stories.templates import WHERE

HOME = "home"
# Named once, and in one order: what an event needs to have happened before it, to the same people.
BEFORE = {
    "promise_help": "tell_lost", "pocket": "no_more", "word": "report", "agree": "offer",
    "not_tell": "ask_hide", "remember": "promise_back", "sorry_late": "oversleep",
    "forgive_late": "sorry_late", "tempt": "break", "lie": "break", "restless": "lie",
    "truth": "break", "confess": "lie", "forgive": "truth", "no_mine": "mine",
    "turns": "no_mine", "share": "turns", "trip": "race", "help_up": "trip", "tie": "help_up",
    "both_won": "tie", "race": "boast", "look_together": "monster", "monster": "dread",
    "only": "look_together", "water": "plant", "nothing": "plant", "never": "nothing",
    "wait": "never", "water_on": "wait", "of_course": "sorry_shout",
    "bloom": "plant", "found_you": "sneeze", "sneeze": "hides", "hides": "play",
    "not_there": "hides", "explain": "thief", "thief": "sees", "sorry_shout": "explain",
    "miss": "trade", "miss_too": "miss", "trade_back": "miss", "worry": "no_way",
    "signal": "no_way", "follow": "signal", "well": "ill", "visit": "ill", "dull": "mine",
    "sulk": "no_mine",
    "left_out": "not_tell", "come": "birthday", "reveal": "birthday", "hooray": "reveal",
    "clear": "rain", "idea": "rain", "waited": "oversleep", "kept": "return", "fun": "idea",
}  # fmt: skip
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
    state: str = ""  # lost, hidden, broken, gone


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
    happened: dict = field(default_factory=dict)  # event -> the people of it
    themes: set = field(default_factory=set)  # what the story can teach
    subject: str = ""  # of whom the last sentence spoke
    ended: bool = False
    ill: str = ""  # who lies in bed
    sought: str = ""  # who can not find home
    present: str = ""  # the thing that is to be given
    signal: str = ""  # the thing that shows the way home
    traded: tuple = ()  # the two things
    pocketed: str = ""  # the thing that is in a pocket
    unseen: bool = False  # whether nobody saw it break
    told: str = ""  # the lost thing that was spoken of last
    bargained: tuple = ()  # who is to get what for a task

    # ---- what a sentence speaks of

    def apply(self, event, slots):
        """Let an event happen; raises Fault, and may then have changed in part."""
        need(not self.ended, "ending", "the story goes on after its end")
        need(self.people or event.startswith("open"), "ending", "a story begins with somebody")
        who = self._people_of(event, slots)
        a, b = who.get("A"), who.get("B")
        o, q = (self._thing(slots, name, event) for name in "OQ")
        p = next((WHERE.get(v, v.split()[-1]) for k, v in slots.items() if k[0] == "P"), None)
        if event in BEFORE:
            need(
                BEFORE[event] in self.happened,
                "cause",
                f"it needs {BEFORE[event].replace('_', ' ')!r} before it",
            )
        if a and b and event not in ("friend", "meet", "made", "birthday", *APART):
            here, there = self.people[a].place, self.people[b].place
            need(here == there, "place", f"{a} is {where(here)}, {b} {where(there)}")
        need(self.ill not in who.values() or event in IN_BED, "place", f"{self.ill} is ill in bed")
        need(event in AGAIN or event not in self.happened, "cause", "that has been said")
        do = getattr(self, f"_{event}", None)
        if do is not None:
            do(a, b, o, q, p, slots)
        self.wants = {
            name: thing for name, thing in self.wants.items() if not self._owns(name, thing)
        }
        self.happened[event] = tuple(who.values())
        self.subject = "" if "AB" in slots else a or b or self.subject

    def other(self, name):
        """The other person, "" if there is none."""
        return next((n for n in self.people if n != name), "")

    def _people_of(self, event, slots):
        """Names for A and B, as introduced or referred to."""
        new = "A" if event.startswith("open") else "B" if event in ("friend", "meet") else ""
        who = {}
        for slot in "AB":
            if slot == new:
                who[slot] = self._introduce(
                    slots[slot],
                    slots.get("K", slots.get("K.a", "")).split()[-1],
                    slots.get("R", ""),
                )
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
            first, second = (self.people[name].place for name in names)
            need(
                first == second,
                "place",
                f"{names[0]} is {where(first)}, {names[1]} {where(second)}",
            )
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
                need(self.things.get(noun, Thing()) == Thing(), "known", f"the {noun} is not new")
            self.things.setdefault(noun, Thing())
        need(noun in self.things, "known", f"there is no {noun}")
        return noun

    # ---- what events need and change: a, b are people, o, q things, p a place, s the words

    def _feel(self, name, mood, why):
        self.people[name].mood, self.people[name].why = mood, why

    def _owns(self, name, thing):
        return thing in self.things and self.things[thing].owner in (name, "both")

    def _holds(self, name, thing):
        there = self.things[thing].holder
        need(there == name, "owner", f"{name} does not have the {thing}")

    def _at(self, name, place):
        there = self.people[name].place
        need(there == place, "place", f"{name} is {where(there)}, not {where(place)}")

    def _hears(self, name):
        """Somebody else is there."""
        other = self.other(name)
        need(other, "speech", "nobody is there to hear it")
        here, there = self.people[name].place, self.people[other].place
        need(here == there, "place", f"{other} is {where(there)}, and can not hear it")
        return other

    def _hand(self, thing, name):
        self.things[thing].holder, self.things[thing].place = name, ""

    def _fulfil(self, who, what):
        self.promises = [p for p in self.promises if p[:2] != (who, what)]

    def _open_own(self, a, b, o, q, p, s):
        self.things[o] = Thing(a, a)

    def _open_want(self, a, b, o, q, p, s):
        self.wants[a] = o
        self._feel(a, "sad", f"wanted the {o}")
        self._use_of(o, s)

    def _use_of(self, o, s):
        if "V" in s:
            need(s["V"] == w.THINGS[o][0], "cause", f"a {o} is not for that")

    def _friend(self, a, b, o, q, p, s):
        need(len(self.people) == 2, "known", "whose friend?")
        self._at(self.other(b), HOME)

    def _meet(self, a, b, o, q, p, s):
        a = self.other(b)
        need(a, "known", "who met?")
        self.people[b].place = self.people[a].place
        need(self.people[a].place != HOME, "place", f"{a} is still at home")

    def _has(self, a, b, o, q, p, s):
        need(self.wants.get(b) != o, "plan", f"{b} wished for the {o}")
        need(not self.things[o].place, "owner", f"the {o} lies there")
        need(not self.things[o].owner, "owner", f"the {o} has an owner")
        self.things[o] = Thing(b, b)

    def _has_home(self, a, b, o, q, p, s):
        self._at(b, HOME)
        self._has(a, b, o, q, p, s)

    def _brought(self, a, b, o, q, p, s):
        need(self.people[b].place != HOME, "place", f"{b} is at home")
        self._has(a, b, o, q, p, s)

    def _want(self, a, b, o, q, p, s):
        need(self.things[o].holder != a, "plan", f"{a} has the {o}")
        self.wants[a] = o
        self._use_of(o, s)

    def _leave_for(self, name, place):
        there = self.people[name].place
        need(name != self.sought, "place", f"{name} can not find the way")
        need(there != place, "place", f"{name} is there")
        need(self.going in ("", place), "plan", f"it was said that they go to {self.going}")
        self.people[name].place = place

    def _go(self, a, b, o, q, p, s):
        self._leave_for(a, p)
        if len({x.place for x in self.people.values()}) == 1:
            self.going = ""

    def _go_both(self, a, b, o, q, p, s):
        for name in (a, b):
            self._leave_for(name, p)
        self.going = ""

    def _take(self, a, b, o, q, p, s):
        self._holds(a, o)
        self._go(a, b, o, q, p, s)

    def _errand(self, a, b, o, q, p, s):
        need(p in w.OUTDOORS, "place", f"one can not do that at the {p}")
        self._go(a, b, o, q, p, s)

    def _back(self, a, b, o, q, p, s):
        need(a != self.sought, "place", f"{a} can not find the way")
        here, there = self.people[a].place, self.people[b].place
        need(here not in (HOME, there), "place", f"{a} is {where(here)}, {b} {where(there)}")
        self.people[a].place = there

    def _see(self, a, b, o, q, p, s):
        name = self.subject or next(iter(self.people))
        self._at(name, p)

    def _sad(self, a, b, o, q, p, s):
        need(self.people[a].mood == "sad", "feeling", f"{a} has no reason to be sad")

    def _glad(self, a, b, o, q, p, s):
        need(self.people[a].mood == "happy", "feeling", f"{a} has no reason to be happy")

    def _sad_both(self, a, b, o, q, p, s):
        for name in (a, b):
            self._sad(name, b, o, q, p, s)

    def _laugh(self, a, b, o, q, p, s):
        need({"only", "find_pocket", "puddle", "found_you", "tie"} & set(self.happened), "cause",
             "nothing was funny")  # fmt: skip
        need(len({x.place for x in self.people.values()}) == 1, "place", "they are apart")

    def _thank(self, a, b, o, q, p, s):
        need(self.people[a].mood == "happy", "feeling", f"{a} has nothing to thank for")

    def _use(self, a, b, o, q, p, s):
        thing = next(noun for noun, (_, used) in w.THINGS.items() if used == s["U"])
        need(thing in self.things, "known", f"there is no {thing}")
        self._holds(a, thing)
        need(self.things[thing].state == "", "cause", f"the {thing} is {self.things[thing].state}")

    def _lose(self, a, b, o, q, p, s):
        self._holds(a, o)
        here = self.people[a].place
        need(here != HOME, "place", f"{a} is at home")
        self.things[o] = Thing(self.things[o].owner, "", here, "lost")
        self._feel(a, "sad", f"lost the {o}")

    def _no_more(self, a, b, o, q, p, s):
        need(o in w.POCKET, "place", f"a {o} is too big to slip out of sight")
        self._lose(a, b, o, q, p, s)
        self.pocketed = o

    def _ask_why(self, a, b, o, q, p, s):
        sad = self._hears(b)
        need(self.people[sad].mood == "sad", "feeling", f"{sad} is not sad")

    def _lost(self, o):
        need(self.things[o].state == "lost", "cause", f"the {o} is not lost")

    def _tell_lost(self, a, b, o, q, p, s):
        need(
            a in (self.happened.get("lose", ()) + self.happened.get("no_more", ())),
            "speech",
            f"{a} has not lost it",
        )
        self._hears(a)
        self._lost(o)
        need(self.things[o].owner == a, "owner", f"it is not the {o} of {a}")
        need(self.told != o, "speech", "that has been said")
        self.told = o

    def _all_lost(self, said=None, helper=""):
        lost = [noun for noun, thing in self.things.items() if thing.state == "lost"]
        need(lost, "cause", "nothing is lost")
        need(said in (None, *lost), "cause", f"the {said} is not lost")
        others = [noun for noun in lost if self.things[noun].owner != helper]
        need(others, "speech", f"{helper} has lost it")
        return [said] if said else others

    def _promise_help(self, a, b, o, q, p, s):
        self._hears(b)
        self._all_lost(helper=b)
        if (b, "help", "") not in self.promises:
            self.promises.append((b, "help", ""))

    def _search(self, a, b, o, q, p, s):
        lost = self._all_lost(o)
        here = self.people[a].place
        need(
            any(self.things[noun].place == here for noun in lost),
            "place",
            f"it is not {where(here)}",
        )
        for name in (a, b):
            self._fulfil(name, "help")

    def _find(self, a, b, o, q, p, s):
        self._lost(o)
        need("search" in self.happened, "cause", "nobody has looked for it")
        need("no_more" not in self.happened, "place", f"the {o} is in a pocket")
        self._at(a, self.things[o].place)
        need(p in (None, self.things[o].place), "place", f"the {o} is not at {p}")
        self._found(a, o)
        self.themes.add("found")

    def _found(self, a, o):
        self._hand(o, a)
        self.things[o].state = ""
        if self.things[o].owner == a:
            self._feel(a, "happy", f"found the {o}")

    def _pocket(self, a, b, o, q, p, s):
        self._hears(b)
        self._all_lost(helper=b)
        need("search" in self.happened, "cause", "nobody has looked for it")

    def _find_pocket(self, a, b, o, q, p, s):
        need(o == self.pocketed, "place", f"the {o} is in no pocket")
        need("pocket" in self.happened, "cause", "nobody spoke of a pocket")
        self._lost(o)
        need(self.things[o].owner == a, "owner", f"it is not the pocket of {a}")
        self._found(a, o)
        self.themes.add("pocket")

    def _give(self, a, b, o, q, p, s):
        self._holds(a, o)
        need(self.things[o].state == "", "cause", f"the {o} is {self.things[o].state}")
        for who, what, task in self.promises:
            if (who, what) == (a, "give"):
                need(task in ("", *self.happened), "promise", "the task is not done")
        reasons = [
            self.things[o].owner == b,
            self.bargained == (b, o),
            self.ill == b and self.present == o,
            self.present == o and (a, "give") in [x[:2] for x in self.promises],
        ]
        need(any(reasons), "cause", f"why would {a} give {b} the {o}?")
        if "visit" not in self.happened:
            self.things[o].owner = b
        self._hand(o, b)
        self._feel(b, "happy", f"got the {o}")
        self._fulfil(a, "give")
        if self.bargained == (b, o):
            self.themes.add("earned")
        if "gone" in self.happened:
            self.themes.add("trust")
        if "well" in self.happened and self.things[o].owner == b:
            self.themes.add("kind")

    def _may_i(self, a, b, o, q, p, s):
        need(self.things[o].state == "", "cause", f"the {o} is {self.things[o].state}")
        other = self._hears(a)
        need(self.things[o].holder == self.things[o].owner == other, "owner", f"{other} has no {o}")
        self.asked = (a, "may I", o)

    def _bargain(self, a, b, o, q, p, s):
        self._hears(b)
        need(o in (None, *self.asked[2:]), "speech", f"nobody asked for the {o}")
        need(self.asked[1:2] == ("may I",) and self.asked[0] != b, "speech", f"nobody asked {b}")
        self.promises.append((b, "give", s["T"]))
        self.bargained, self.asked = (self.asked[0], self.asked[2]), ()

    def _task(self, a, b, o, q, p, s):
        place, asked, _ = next(task for task in w.TASKS.values() if task[2] == s["D"])
        need(
            any(p[2] == asked and p[0] != a for p in self.promises), "cause", "nobody asked for it"
        )
        self._at(a, place)
        self.happened[asked] = (a,)

    def _report(self, a, b, o, q, p, s):
        asked = next(asked for _, asked, did in w.TASKS.values() if did == s["D"])
        need(self.happened.get(asked) == (a,), "speech", f"{a} did not do that")
        self._hears(a)

    def _word(self, a, b, o, q, p, s):
        self._hears(b)
        need(any(p[0] == b for p in self.promises), "promise", f"{b} has promised nothing")

    def _offer(self, a, b, o, q, p, s):
        need(self.things[o].state == "", "cause", f"the {o} is {self.things[o].state}")
        self._holds(a, o)
        other = self._hears(a)
        self._holds(other, q)
        need(
            (self.things[o].owner, self.things[q].owner) == (a, other),
            "owner",
            "one can trade only what is one's own",
        )
        self.happened.pop("agree", None)
        self.asked = (a, o, q)

    def _agree(self, a, b, o, q, p, s):
        need(len(self.asked) == 3 and self.asked[0] != b, "speech", f"nobody asked {b}")
        self._hears(b)

    def _trade(self, a, b, o, q, p, s):
        self._holds(a, o)
        self._holds(b, q)
        need((a, o, q) == self.asked, "speech", "that was not offered")
        need("agree" in self.happened, "cause", f"{b} has not agreed")
        self._swap(a, b, o, q)
        self.themes.add("traded")
        self.traded = (o, q)
        self.asked = ()

    def _swap(self, a, b, o, q):
        self.things[o].owner, self.things[q].owner = b, a
        self._hand(o, b)
        self._hand(q, a)
        self._feel(a, "happy", f"got the {q}")
        self._feel(b, "happy", f"got the {o}")

    def _miss(self, a, b, o, q, p, s):
        need(o in self.traded, "cause", f"the {o} was not traded")
        self.themes.discard("traded")
        need(self.happened["trade"][:1] == (a,), "cause", f"{a} has given nothing away")
        need(self.things[o].owner not in ("", a), "owner", f"the {o} is with {a}")
        self._feel(a, "sad", f"missed the {o}")
        for person in self.people.values():  # it is night
            person.place = HOME

    def _miss_too(self, a, b, o, q, p, s):
        need(self.happened["miss"][:1] != (b,), "speech", f"{b} has said so")
        need(self.things[q].owner not in ("", b), "owner", f"the {q} is with {b}")

    def _trade_back(self, a, b, o, q, p, s):
        need("miss_too" in self.happened, "cause", "nobody has asked for it")
        self._holds(b, o)
        self._holds(a, q)
        self._swap(b, a, o, q)
        self.themes = {"traded back"}

    def _plan(self, a, b, o, q, p, s):
        need(self.things[o].state == "", "cause", f"the {o} is {self.things[o].state}")
        need(not self.plan, "plan", "there is another plan")
        need(self.things[o].holder in (a, b), "owner", f"they have no {o}")
        need(p in w.OUTDOORS, "plan", f"one can not do that at the {p}")
        self.plan = (p, o)

    def _rain(self, a, b, o, q, p, s):
        need(self.plan[1:] and self.plan[1] in self.things, "cause", "the rain would spoil nothing")
        need(self.plan, "cause", "the rain would spoil nothing")
        need(o in (None, self.plan[1]), "place", f"the {o} stayed at home")
        self.raining = True
        for name in self.people:
            self._feel(name, "sad", "it rained")

    def _idea(self, a, b, o, q, p, s):
        self._hears(b)
        need(p in w.INDOORS, "plan", f"it rains into the {p}")
        self.going = p

    def _fun(self, a, b, o, q, p, s):
        need(self.raining, "cause", "it does not rain")
        place = next(place for place, fun in w.INDOORS.items() if fun == s["I"])
        for name in (a, b):
            self._at(name, place)
            self._feel(name, "happy", "it was fun")
        self.themes.add("rain")

    def _puddle(self, a, b, o, q, p, s):
        need(self.people[b].place not in w.INDOORS, "place", "there are no puddles")
        need(self.raining and self.plan[1:] == ("boat",), "cause", "there is no rain or no boat")
        self._hears(b)
        for name in self.people:
            self._feel(name, "happy", "it was fun")
        self.plan = ()
        self.themes.add("rain")

    def _clear(self, a, b, o, q, p, s):
        need(self.raining, "cause", "it did not rain")
        self.raining = False
        for person in self.people.values():
            person.place = HOME

    def _at_last(self, a, b, o, q, p, s):
        need(self.things[o].holder in (a, b), "owner", f"they do not have the {o}")
        need((p, o) == self.plan, "plan", "that was not the plan")
        need(not self.raining, "cause", "it is still raining")
        self.plan = ()
        for name in (a, b):
            self.people[name].place = p
            self._feel(name, "happy", "the plan came true")

    def _made(self, a, b, o, q, p, s):
        self.things[o] = Thing(a, a, "", "secret")
        self.promises.append((a, "give", ""))

    def _secret(self, o):
        need(self.things[o].state == "secret", "cause", f"the {o} is no secret")

    def _hide(self, a, b, o, q, p, s):
        self._holds(a, o)
        self._secret(o)
        self.things[o].holder, self.things[o].place = "", p

    def _keeps(self, name):
        return any(t.state == "secret" and t.owner == name for t in self.things.values())

    def _ask_hide(self, a, b, o, q, p, s):
        need(self._keeps(self._hears(b)), "cause", "nothing is hidden")

    def _not_tell(self, a, b, o, q, p, s):
        need(self._keeps(a), "speech", f"{a} has no secret")
        self._feel(self._hears(a), "sad", "was left out")

    def _left_out(self, a, b, o, q, p, s):
        name = b or self.subject
        need(self.people[name].mood == "sad", "feeling", f"{name} was not left out")

    def _birthday(self, a, b, o, q, p, s):
        need(self._keeps(self.other(b)), "cause", f"nobody has a present for {b}")

    def _come(self, a, b, o, q, p, s):
        hid = [t.place for t in self.things.values() if t.state == "secret"]
        need(p in hid, "place", f"nothing is hidden at the {p}")
        self._hears(a)
        need(self._keeps(a), "cause", f"{a} has nothing to show")
        self.going = p

    def _reveal(self, a, b, o, q, p, s):
        self._secret(o)
        need(self.things[o].owner == a, "owner", f"it is not the secret of {a}")
        self._at(a, self.things[o].place)
        self._hears(a)
        self._hand(o, a)
        self.things[o].state = ""
        self.themes.add("secret")
        self.present = o

    def _hooray(self, a, b, o, q, p, s):
        need(self.happened["birthday"] == (b,), "speech", f"it is not the birthday of {b}")

    def _may_borrow(self, a, b, o, q, p, s):
        need(self.things[o].state == "", "cause", f"the {o} is {self.things[o].state}")
        other = self._hears(a)
        need(self.things[o].owner == other, "owner", f"{other} has no {o}")
        self._holds(other, o)
        self.asked = (a, "borrow", o)

    def _lend(self, a, b, o, q, p, s):
        need(not self.night, "speech", "it is dark already")
        need(self.asked == (a, "borrow", o), "speech", f"{a} did not ask for it")
        self._holds(b, o)
        self._hand(o, a)
        self.promises.append((a, "return", o))
        self.asked = ()
        self._feel(a, "happy", f"got the {o}")

    def _promise_back(self, a, b, o, q, p, s):
        need((a, "return") in [p[:2] for p in self.promises], "speech", f"{a} has borrowed nothing")
        self._hears(a)

    def _late(self, a, b, o, q, p, s):
        need(not self.night, "cause", "it is night")
        need(any(x.place != HOME for x in self.people.values()), "place", "all are at home")
        self.night = True

    def _dusk(self, a, b, o, q, p, s):
        need(not self.night, "cause", "the sun is down")
        need(any(x.place != HOME for x in self.people.values()), "place", "all are at home")

    def _remember(self, a, b, o, q, p, s):
        need(self.happened["promise_back"] == (a,), "promise", f"{a} has promised nothing")

    def _return(self, a, b, o, q, p, s):
        self._holds(a, o)
        other = self._hears(a)
        need(self.things[o].owner == other, "owner", f"it is not the {o} of {other}")
        need(self.things[o].state == "", "cause", f"the {o} is {self.things[o].state}")
        need("visit" not in self.happened or "well" in self.happened, "cause", f"{a} is still ill")
        self._hand(o, other)
        self._fulfil(a, "return")
        self._feel(a, "happy", "all was well again")
        self._feel(other, "happy", f"got the {o} back")
        if "visit" in self.happened:
            self.themes.add("kind")
        elif not {"oversleep", "break"} & set(self.happened) and not self.night:
            self.themes.add("kept")

    def _kept(self, a, b, o, q, p, s):
        self._hears(b)
        need(self.happened["return"][:1] != (b,), "speech", f"{b} has brought it back")
        need("oversleep" not in self.happened, "speech", "the promise was not kept")
        need("promise_back" in self.happened, "speech", "nothing was promised")
        need(not self.night, "speech", "it is after dark")

    def _oversleep(self, a, b, o, q, p, s):
        need((a, "return") in [p[:2] for p in self.promises], "cause", f"{a} has nothing to forget")
        need("dusk" in self.happened, "cause", "it is early")
        need(self.people[a].place != HOME, "place", f"{a} is at home")
        self._feel(self.other(a), "sad", f"waited for {a}")
        self._feel(a, "sad", "was late")

    def _waited(self, a, b, o, q, p, s):
        self._at(b, HOME)
        need(self.people[self.other(b)].place != HOME, "place", "they are together")
        need(self.happened["oversleep"] != (b,), "cause", f"{b} slept")

    def _sorry_late(self, a, b, o, q, p, s):
        need(self.happened["oversleep"] == (a,), "speech", f"{a} was not late")
        need("promise_back" in self.happened, "speech", "nothing was promised")
        self._hears(a)

    def _forgive_late(self, a, b, o, q, p, s):
        need(self.happened["sorry_late"] != (b,), "speech", f"{b} was late")
        self._hears(b)
        self.themes.add("forgiven")
        self._feel(b, "happy", "all was well again")

    def _break(self, a, b, o, q, p, s):
        need(self.things[o].state == "", "cause", f"the {o} is {self.things[o].state}")
        other = self.other(a)
        self.unseen = bool(other) and self.people[other].place != self.people[a].place
        self._holds(a, o)
        need(self.things[o].owner != a, "cause", f"the {o} belongs to {a}")
        need(o in w.BREAKS, "cause", f"a {o} does not break")
        self.things[o].state = "broken"
        self._feel(a, "sad", f"broke the {o}")

    def _broke(self, a, o=None):
        need(self.happened["break"] == (a,), "speech", f"{a} broke nothing")
        broken = [noun for noun, thing in self.things.items() if thing.state == "broken"]
        need(o in (None, *broken), "speech", f"the {o} is not broken")

    def _tempt(self, a, b, o, q, p, s):
        need(self.unseen, "speech", "it was seen")
        self._broke(a or self.happened["break"][0])
        need("truth" not in self.happened, "speech", "the truth is told")

    def _lie(self, a, b, o, q, p, s):
        need(self.unseen and "truth" not in self.happened, "speech", "the truth is known")
        self._broke(a, o)
        self._hears(a)

    def _restless(self, a, b, o, q, p, s):
        self._broke(a)

    def _truth(self, a, b, o, q, p, s):
        self._broke(a, o)
        self._feel(self._hears(a), "sad", f"the {o} was broken")
        self.themes.add("truth")

    def _confess(self, a, b, o, q, p, s):
        need("truth" not in self.happened, "speech", "the truth is told")
        self._truth(a, b, o, q, p, s)
        self.happened["truth"] = (a,)

    def _forgive(self, a, b, o, q, p, s):
        need(self.happened["truth"] != (b,), "speech", f"{b} told it")
        self._hears(b)

    def _mend(self, a, b, o, q, p, s):
        need(self.things[o].state == "broken", "cause", f"the {o} is not broken")
        need(self.things[o].holder in (a, b), "owner", f"{a} does not have the {o}")
        need("truth" in self.happened, "cause", "nobody knows that it is broken")
        self.things[o].state = ""

    def _spot(self, a, b, o, q, p, s):
        need(len(self.people) == 2, "known", "who found it?")
        here, there = (person.place for person in self.people.values())
        need(here == there != HOME, "place", "they are not out together")
        need(not self.things[o].owner, "owner", f"the {o} has an owner")
        self.things[o].place = here

    def _quarrel(self, name):
        self._hears(name)
        free = any(not thing.owner for thing in self.things.values())
        need("spot" in self.happened and free, "cause", "there is nothing to quarrel about")

    def _mine(self, a, b, o, q, p, s):
        self._quarrel(a)

    def _no_mine(self, a, b, o, q, p, s):
        self._quarrel(b)
        need(self.happened["mine"] != (b,), "speech", f"{b} has said so")
        for name in self.people:
            self._feel(name, "sad", "they had quarrelled")

    def _sulk(self, a, b, o, q, p, s):
        self._quarrel(a)
        need(
            o is None or (not self.things[o].owner and self.things[o].place),
            "cause",
            f"the quarrel is not about the {o}",
        )

    def _dull(self, a, b, o, q, p, s):
        self._quarrel(self.happened["mine"][0])

    def _turns(self, a, b, o, q, p, s):
        self._quarrel(b)

    def _share(self, a, b, o, q, p, s):
        need(not self.things[o].owner, "owner", f"the {o} has an owner")
        self.things[o] = Thing("both", a)
        for name in self.people:
            self._feel(name, "happy", f"had the {o}")
        self.themes.add("shared")

    def _no_way(self, a, b, o, q, p, s):
        need(self.night, "cause", "it is not dark")
        need(self.people[a].place != HOME, "place", f"{a} is at home")
        self._feel(a, "sad", "was lost")
        self.sought = a

    def _afraid(self, a, b, o, q, p, s):
        need({"no_way", "dread"} & set(self.happened), "feeling", f"{a} has nothing to fear")
        need(self.people[a].mood == "sad", "feeling", f"{a} has nothing to fear")

    def _worry(self, a, b, o, q, p, s):
        self._at(b, HOME)
        need(self.happened["no_way"] != (b,), "feeling", f"{b} is the one who is lost")
        self._feel(b, "sad", f"{a or self.other(b)} was not home")

    def _signal(self, a, b, o, q, p, s):
        noun = next(noun for noun, (done, _) in w.SIGNALS.items() if done == s["S"])
        need(noun in self.things, "known", f"there is no {noun}")
        self._holds(b, noun)
        self.signal = noun
        self._at(b, HOME)
        need(self.happened["no_way"] != (b,), "cause", f"{b} is the one who is lost")

    def _follow(self, a, b, o, q, p, s):
        need(self.sought == a, "cause", f"{a} is not lost")
        self.sought = ""
        need(s["N"] == w.SIGNALS[self.signal][1], "cause", f"there is no {s['N']}")
        self.people[a].place = HOME
        self._feel(a, "happy", "was home")
        self._feel(b or self.other(a), "", "")
        self.themes.add("watch")

    def _boast(self, a, b, o, q, p, s):
        need("tie" not in self.happened, "speech", "nobody was faster")
        self._hears(a)
        need(self.people[a].trait != "shy", "feeling", f"{a} is shy, and does not boast")

    def _race(self, a, b, o, q, p, s):
        self._hears(b)
        need(self.happened["boast"] != (b,), "speech", f"{b} boasted")
        need(self.people[b].place != p, "place", f"they are at the {p}")
        self.going = p

    def _trip(self, a, b, o, q, p, s):
        need("help_up" not in self.happened, "cause", "that has happened")
        need(self.happened["boast"] == (a,), "cause", f"{a} did not boast")
        need(self.going, "cause", "nobody is running")
        self._feel(a, "sad", "had fallen")

    def _help_up(self, a, b, o, q, p, s):
        need(self.happened["trip"] == (a,), "cause", f"{a} did not fall")
        self._feel(a, "happy", f"{b} helped")

    def _tie(self, a, b, o, q, p, s):
        self._go_both(a, b, o, q, p, s)
        self.themes.add("race")

    def _both_won(self, a, b, o, q, p, s):
        need(self.happened["trip"] == (a,), "speech", f"{a} did not fall")
        self._hears(a)

    def _dread(self, a, b, o, q, p, s):
        need(self.people[a].place != p, "place", f"{a} is there")
        need(not self.plan, "plan", "there is another plan")
        need(w.DARK.get(p, "")[:1] == (s["X"],), "cause", f"nothing {s['X']} at the {p}")
        need(self.people[a].trait != "brave", "feeling", f"{a} is brave")
        self._feel(a, "sad", f"was afraid of the {p}")
        self.plan = (p, "")

    def _monster(self, a, b, o, q, p, s):
        need(self.happened["dread"] == (a,), "speech", f"{a} is not afraid")
        need(self.plan == (p, ""), "place", f"{a} is not afraid of the {p}")
        self._hears(a)

    def _look_together(self, a, b, o, q, p, s):
        need(self.plan[1:] == ("",), "cause", "nobody is afraid any more")
        self._hears(b)
        need(self.happened["monster"] != (b,), "speech", f"{b} is afraid")
        self.going = self.plan[0]

    def _creep(self, a, b, o, q, p, s):
        need("look_together" in self.happened, "cause", "why creep?")
        self._go_both(a, b, o, q, p, s)

    def _only(self, a, b, o, q, p, s):
        need(self.plan[1:] == ("",), "cause", "nobody is afraid any more")
        need(w.DARK[self.plan[0]][1] == s["C"], "cause", f"that was not at the {self.plan[0]}")
        for name in self.people:
            self._at(name, self.plan[0])
            self._feel(name, "happy", "there was no monster")
        self.plan = ()
        self.themes.add("brave")

    def _ill(self, a, b, o, q, p, s):
        need(self.other(b), "known", "a story has two people")
        self._at(b, HOME)
        self._feel(b, "sad", "was ill")
        self.ill = b

    def _visit(self, a, b, o, q, p, s):
        self.present = o
        need(self.happened["ill"] != (a,), "speech", f"{a} is ill")
        self._holds(a, o)
        self._hears(a)

    def _well(self, a, b, o, q, p, s):
        need(self.happened["ill"] == (b,), "cause", f"{b} was not ill")
        self._feel(b, "happy", "was well again")
        self.ill = ""

    def _play(self, a, b, o, q, p, s):
        need("hides" not in self.happened, "plan", "somebody is hiding")
        self._hears(a)

    def _hides(self, a, b, o, q, p, s):
        b = b or self.other(self.happened["play"][0])
        need(self.happened["play"] != (b,), "plan", f"{b} is to seek")
        need(self.people[b].place != p, "place", f"{b} is there")
        self.people[b].place = p

    def _not_there(self, a, b, o, q, p, s):
        need("seek" not in self.themes, "cause", "all are found")
        need(self.happened["play"] == (a,), "plan", f"{a} is to hide")
        there = self.people[self.other(a)].place
        need(there != p, "place", f"{self.other(a)} is there")
        need({there, p} in w.NEAR, "place", f"the {p} is far from the {there}")
        self.people[a].place = p

    def _sneeze(self, a, b, o, q, p, s):
        need(self.people[self.happened["hides"][-1]].place == p, "place", f"nobody is at the {p}")
        self.going = p

    def _found_you(self, a, b, o, q, p, s):
        need(self.happened["play"] == (a,), "plan", f"{a} is to hide")
        there = self.people[self.other(a)].place
        need(self.going == there, "place", "nobody has heard anything")
        self.people[a].place, self.going = there, ""
        for name in self.people:
            self._feel(name, "happy", "it was fun")
        self.themes.add("seek")

    def _plant(self, a, b, o, q, p, s):
        need(self.people[a].place in (HOME, p), "place", f"{a} is not there")
        need(not self.plan, "plan", "there is another plan")
        need(p in w.PLANTED, "place", f"nothing grows at the {p}")
        self.plan = (p, "seed")

    def _water(self, a, b, o, q, p, s):
        need(self.plan[1:] == ("seed",), "cause", "it has come up")
        need(self.happened["plant"] == (a,), "cause", f"{a} planted nothing")

    def _nothing(self, a, b, o, q, p, s):
        need(self.plan[1:] == ("seed",), "cause", "it has come up")
        self._feel(self.happened["plant"][0], "sad", "nothing came up")

    def _never(self, a, b, o, q, p, s):
        need(self.plan[1:] == ("seed",), "cause", "it has come up")
        need(self.happened["plant"] == (a,), "speech", f"{a} planted nothing")
        self._hears(a)

    def _wait(self, a, b, o, q, p, s):
        need(self.happened["never"] != (b,), "speech", f"{b} gave up")
        self._hears(b)

    def _water_on(self, a, b, o, q, p, s):
        need(self.happened["never"] == (a,), "cause", f"{a} had not given up")

    def _bloom(self, a, b, o, q, p, s):
        need("water_on" in self.happened, "cause", "nobody has waited")
        need(self.plan == (p, "seed"), "place", f"nothing was planted at the {p}")
        self.plan = ()
        self._feel(self.happened["plant"][0], "happy", "the seed had come up")
        self.themes.add("patience")

    def _gone(self, a, b, o, q, p, s):
        a = a or self.things[o].holder
        need(a in self.people, "owner", f"nobody has the {o}")
        need(self.things[o].owner == a, "owner", f"it is not the {o} of {a}")
        self._holds(a, o)
        need(o in w.LOOSE and self.other(a), "cause", f"nobody can have taken the {o}")
        self.things[o] = Thing(a, self.other(a), "", "gone")
        self._feel(a, "sad", f"the {o} was gone")

    def _sees(self, a, b, o, q, p, s):
        need(self.things[o].state == "gone", "cause", f"the {o} is not gone")
        self._holds(b, o)
        self.people[a].place = self.people[b].place = p

    def _thief(self, a, b, o, q, p, s):
        need(any(t.state == "gone" for t in self.things.values()), "speech", "nothing is gone")
        need(self.happened["sees"][:1] == (a,), "speech", f"{a} has seen nothing")
        need(o is None or self.things[o].state == "gone", "speech", f"the {o} is not gone")
        self._hears(a)

    def _explain(self, a, b, o, q, p, s):
        need(self.happened["thief"] != (b,), "speech", f"{b} was not asked")
        self._hears(b)
        noun = next((noun for noun, thing in self.things.items() if thing.state == "gone"), None)
        need(noun, "cause", "nothing is gone")
        need(w.LOOSE[noun] == s["L"], "cause", f"a {noun} has no {s['L']}")
        self.things[noun].state = ""
        self.promises.append((b, "give", ""))

    def _sorry_shout(self, a, b, o, q, p, s):
        need(self.happened["thief"] == (a,), "speech", f"{a} did not shout")
        self._hears(a)

    def _of_course(self, a, b, o, q, p, s):
        need(self.happened["sorry_shout"][0] != b, "speech", f"{b} shouted")
        self._hears(b)

    # ---- the end

    def _finish(self):
        need(len(self.people) == 2, "ending", "there is only one person")
        need(not self.promises, "promise", "a promise is still open")
        need(not self.wants, "ending", "a wish is still open")
        need(not self.plan and not self.going, "ending", "a plan is still open")
        for noun, thing in self.things.items():
            need(not thing.state, "ending", f"the {noun} is still {thing.state}")
            need(thing.holder in (thing.owner, *self.people), "ending", f"where is the {noun}?")
            need(thing.owner in (thing.holder, "both"), "ending", f"the {noun} is not given back")
        need(self.themes, "ending", "nothing has happened")
        need(not self.ill, "ending", f"{self.ill} is still ill")
        need(not self.sought, "ending", f"{self.sought} is still lost")
        need(not self.asked, "ending", "a question is still open")
        need(
            "no_mine" not in self.happened or "share" in self.happened,
            "ending",
            "the quarrel is still open",
        )
        self.ended = True

    def _friends(self, a, b, o, q, p, s):
        need("meet" in self.happened, "ending", f"{a} and {b} have been friends before")
        self._finish()

    def _better(self, a, b, o, q, p, s):
        need("friend" in self.happened, "ending", f"{a} and {b} had only just met")
        self._finish()

    def _homeward(self, a, b, o, q, p, s):
        need(self.people[a].place != HOME, "place", f"{a} is at home")
        self._finish()
        need(self.people[a].mood != "sad", "feeling", f"{a} is sad")

    def _asleep(self, a, b, o, q, p, s):
        need("oversleep" not in self.happened, "ending", f"{a} has slept enough")
        self._finish()
        need(self.people[a].mood != "sad", "feeling", f"{a} is sad")

    def _tight(self, a, b, o, q, p, s):
        self._finish()
        self._holds(a, o)
        need({"found", "pocket", "earned"} & self.themes, "ending", "nothing was won or lost")

    def _lesson(self, a, b, o, q, p, s):
        self._finish()
        need(s["M"] in self.themes, "ending", "that does not follow")


# A thing is new in these, and people who act on each other may be apart in those.
# What a person who is ill can do or have done, and what can happen again.
IN_BED = ("sad", "glad", "thank", "ask_why", "visit", "give", "well", "laugh")
AGAIN = (
    "has", "has_home", "brought", "see", "go", "go_both", "take", "back", "use", "sad", "glad",
    "thank", "give", "laugh", "offer", "lose", "find", "search", "tell_lost", "promise_help",
    "ask_why",
)  # fmt: skip
NEW = ("open_own", "open_want", "made", "spot")
APART = ("back", "hides", "sees", "miss", "worry", "follow", "waited", "left_out", "found_you")


def need(true, rule, why):
    """Raise Fault unless it is true."""
    if not true:
        raise Fault(rule, why)


def where(place):
    """Say where: "at home" or "by the river"."""
    return "at home" if place == HOME else w.at(place)
