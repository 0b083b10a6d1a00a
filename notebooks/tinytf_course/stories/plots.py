"""The plots: who does what, with twists. `tell` writes a story and keeps its world.

Every choice is drawn from a list, and its probability is counted: the sum of their logarithms is
that of the story, so the entropy of the storybook, the floor of any model's loss, is known.
"""

import math
import random
import re
from dataclasses import dataclass

from tinytf_course.stories import words as w
from tinytf_course.stories.templates import LESSONS, SLOT, TEMPLATES, readings
from tinytf_course.stories.world import HOME, World


@dataclass(frozen=True)
class Story:
    """A story: its plot and sentences, the world at its end, and its probability's logarithm."""

    plot: str
    sentences: tuple
    world: World
    log_probability: float

    @property
    def text(self):
        """All sentences, in one line."""
        return " ".join(self.sentences)


class _Teller:
    """Tells one story: draws the choices, writes the sentences, and lets the world check them."""

    def __init__(self, seed, plot):
        self.rng = random.Random(f"story/{seed}")
        self.world, self.sentences, self.log_probability = World(), [], 0.0
        self.plot = plot or self.draw(PLOTS)
        self.a = self.draw(tuple(w.KINDS))
        self.b = self.draw([n for n in w.KINDS if w.GENDER[n] != w.GENDER[self.a]])
        self.traits = {}

    def draw(self, options):
        """One of some options, each as likely as the others."""
        options = tuple(options)
        self.log_probability -= math.log(len(options))
        return self.rng.choice(options)

    def chance(self, p):
        """True with probability p."""
        yes = self.rng.random() < p
        self.log_probability += math.log(p if yes else 1 - p)
        return yes

    def same(self, count):
        """So many of the choices drawn so far lead to this same text: their probabilities add."""
        self.log_probability += math.log(count)

    def draw_two(self, options):
        """Two different ones."""
        first = self.draw(options)
        return first, self.draw(x for x in options if x != first)

    # ---- one sentence

    def say(self, event, a=None, b=None, o=None, q=None, p=None, only=None, **said):
        """Tell an event in one of its ways; `only` says which templates will do."""
        fits = [t for t in TEMPLATES[event] if only is None or only(t)]
        template = self.draw(fits)
        people, things = {"A": a, "B": b}, {"O": o, "Q": q}
        written, end = "", 0
        for match in SLOT.finditer(template):
            slot, before = match[1], template[: match.start()]
            written += template[end : match.start()]
            end = match.end()
            if slot in said:
                written += said[slot]
            elif slot == "AB":
                written += self._both(a, b, before)
            elif slot in people:
                written += self._name(people[slot], before)
            elif slot[0] in people:
                written += w.PRONOUNS[w.GENDER[people[slot[0]]]][slot[2:]]
            elif slot[0] in things:
                noun = things[slot[0]]
                written += {"": f"the {noun}", ".a": w.article(noun), ".n": noun}[slot[1:]]
            else:
                written += self._other(slot, b or a, o, p)
        self.put(event, written + template[end:])

    def _name(self, name, before):
        """A name, or sometimes a pronoun, for whom the last sentence spoke of."""
        if not before and name == self.world.subject and self.chance(0.4):
            return w.PRONOUNS[w.GENDER[name]]["He"]
        return name

    def _both(self, a, b, before):
        if len(self.world.people) == 2 and self.sentences and self.chance(0.5):
            return "they" if before else "They"
        return f"{a} and {b}"

    def _other(self, slot, name, o, p):
        if slot == "K":
            return w.KINDS[name]
        if slot == "K.a":
            return w.article(w.KINDS[name])
        if slot == "R":  # A's is told before B's
            no = [NOT.get(self.plot)] if name == self.a else self.traits.values()
            self.traits[name] = self.draw(t for t in w.TRAITS if t not in no)
            return self.traits[name]
        if slot in "FG":
            return self.draw(w.FEELINGS["happy" if slot == "F" else "sad"])
        if slot in "VU":
            return w.THINGS[o]["VU".index(slot)]
        return {"P": p, "P.to": f"to the {p}", "P.at": w.at(p), "P.At": w.at(p).capitalize()}[slot]

    def put(self, event, sentence):
        """Write a sentence that means an event; the world checks it."""
        said = next(slots for found, slots in readings(sentence) if found == event)
        self.world.apply(event, said)
        self.sentences.append(sentence)

    def maybe(self, p, event, *people, **slots):
        """Tell an event with probability p."""
        if self.chance(p):
            self.say(event, *people, **slots)

    def look(self, place, p=0.4):
        """Say, perhaps, what there is to see."""
        if self.chance(p):
            self.put("see", self.draw(w.PLACES[place][1]))

    def close(self, theme, *more):
        """End the story: with its lesson, or in another way."""
        a, b = self.a, self.b
        ways = ["lesson", "lesson", *more]
        if self.plot in ("lost", "trade"):
            ways.append("friends")
        if self.plot in ("quarrel", "dark", "thief", "late", "broken", "monster", "race"):
            ways.append("better")
        if self.plot != "late":
            ways.append("homeward" if self.world.people[a].place != HOME else "asleep")
        way = self.draw(range(len(ways)))
        self.same(ways.count(ways[way]))
        if ways[way] == "lesson":
            self.put("lesson", self.draw(LESSONS[theme]))
        elif ways[way] in ("friends", "better"):
            self.say(ways[way], a, b)
        elif ways[way] in ("homeward", "asleep"):
            self.say(ways[way], a)
        else:
            self.say("tight", a, o=more[0])

    def go(self, name, place, first=False):
        """Somebody goes somewhere, and perhaps there is something to see."""
        self.say("go", name, p=place, only=lambda t: first or not t.startswith("One day"))
        self.look(place)

    def take(self, name, thing, place):
        """Somebody takes a thing somewhere, and perhaps there is something to see."""
        self.say("take", name, o=thing, p=place)
        self.look(place)

    def go_both(self, place):
        """The two go together."""
        self.say("go_both", self.a, self.b, p=place)
        self.look(place)

    def friends(self, days=False):
        """Introduce two friends; the story may take some days."""
        self.say("open", self.a, only=lambda t: not (days and t.startswith("One")))
        self.say("friend", self.a, self.b)

    # ---- the plots

    def lost(self):
        a, b = self.a, self.b
        o = self.draw(w.THINGS)
        place = self.draw(w.AT_WATER.get(o, w.OUTDOORS))
        self.say("open_own", a, o=o)
        self.take(a, o, place)
        pocket = o in w.POCKET and self.chance(0.5)
        self.say("no_more" if pocket else "lose", a, o=o)
        self.maybe(0.4, "sad", a)
        self.say("meet", a, b)
        self.maybe(0.5, "ask_why", None, b)
        self.say("tell_lost", a, o=o)
        self.say("promise_help", None, b)
        self.say("search", a, b, o=o)
        if pocket:
            self.say("pocket", None, b)
            self.say("find_pocket", a, o=o)
            self.maybe(0.5, "laugh", a, b)
            return self.close("pocket", o)
        finder = self.draw((a, b))
        self.say("find", finder, o=o, p=place)
        if finder == b:
            self.say("give", b, a, o=o)
        self.maybe(0.3, "glad", a)
        self.maybe(0.3, "thank", a, b)
        return self.close("found", o)

    def wish(self):
        a, b, o = self.a, self.b, self.draw(w.THINGS)
        place, asked, did = w.TASKS[self.draw(w.TASKS)]
        self.say("open_want", a, o=o)
        self.say("friend", a, b)
        self.say("has_home", None, b, o=o)
        self.say("may_i", a, o=o)
        self.say("bargain", None, b, o=o, T=asked)
        self.go(a, place)
        self.say("task", a, D=did)
        self.say("back", a, b)
        if self.chance(0.6):
            self.say("report", a, D=did)
            self.maybe(0.6, "word", None, b)
        self.say("give", b, a, o=o)
        self.maybe(0.3, "glad", a)
        self.maybe(0.5, "use", a, o=o)
        self.close("earned", o)

    def trade(self):
        a, b = self.a, self.b
        o, q = self.draw_two(w.THINGS)
        place = self.draw(w.OUTDOORS)
        self.say("open_own", a, o=o)
        self.say("want", a, o=q)
        self.go(a, place, first=True)
        self.say("meet", a, b)
        self.say("brought", None, b, o=q)
        self.say("offer", a, o=o, q=q)
        self.say("agree", None, b)
        self.say("trade", a, b, o, q)
        if self.chance(0.5):
            self.say("miss", a, o=o)
            self.say("miss_too", None, b, q=q)
            self.say("trade_back", a, b, o, q)
            return self.close("traded back")
        user, thing = self.draw(((a, q), (b, o)))
        if self.chance(0.5):
            self.say("use", user, o=thing)
        else:
            self.same(2)
        return self.close("traded")

    def rain(self):
        a, b, o = self.a, self.b, self.draw(w.THINGS)
        place, inside = self.draw(w.OUTDOORS), self.draw(w.INDOORS)
        self.say("open_own", a, o=o)
        self.say("friend", a, b)
        self.say("plan", a, b, o, p=place)
        self.say("rain", a, o=o)
        self.maybe(0.5, "sad_both", a, b)
        if o == "boat" and self.chance(0.5):
            self.same(len(w.INDOORS))  # nobody goes inside
            self.say("puddle", None, b)
            self.maybe(0.5, "laugh", a, b)
            return self.close("rain")
        self.say("idea", None, b, p=inside)
        self.go_both(inside)
        self.say("fun", a, b, I=w.INDOORS[inside])
        self.say("clear")
        self.say("at_last", a, b, o, p=place)
        self.say("use", a, o=o)
        return self.close("rain")

    def secret(self):
        a, b, o, place = self.a, self.b, self.draw(w.THINGS), self.draw(w.PLACES)
        self.friends(days=True)
        self.say("made", a, b, o)
        self.say("hide", a, o=o, p=place)
        if self.chance(0.6):
            self.say("ask_hide", None, b)
            self.say("not_tell", a)
            if self.chance(0.5):
                self.say("left_out", a, b)
        self.say("birthday", None, b)
        self.say("come", a, p=place)
        self.go_both(place)
        self.say("reveal", a, o=o)
        self.maybe(0.5, "hooray", a, b)
        self.say("give", a, b, o)
        self.say("thank", b, a)
        self.close("secret")

    def borrow(self, thing, promised=True):
        """The beginning of three plots: A borrows a thing of B and goes somewhere."""
        a, b, place = self.a, self.b, self.draw(w.AT_WATER.get(thing, w.OUTDOORS))
        self.friends()
        self.say("has_home", None, b, o=thing)
        self.say("may_borrow", a, o=thing)
        self.say("lend", a, b, thing)
        if promised or self.chance(0.5):
            self.say("promise_back", a)
        self.take(a, thing, place)
        return a, b, thing

    def kept(self):
        a, b, o = self.borrow(self.draw(w.THINGS))
        self.say("use", a, o=o)
        self.say("dusk")
        self.maybe(0.5, "remember", a)
        self.say("back", a, b)
        self.say("return", a, o=o)
        self.maybe(0.5, "kept", None, b)
        self.close("kept")

    def late(self):
        a, b, o = self.borrow(self.draw(w.THINGS))
        self.maybe(0.5, "use", a, o=o)
        self.say("dusk")
        self.say("oversleep", a)
        self.maybe(0.6, "waited", None, b)
        self.say("back", a, b)
        self.say("sorry_late", a)
        self.say("return", a, o=o, only=lambda t: "said" not in t)
        self.say("forgive_late", None, b)
        self.close("forgiven")

    def broken(self):
        a, b, o = self.borrow(self.draw(w.BREAKS), promised=False)
        self.say("break", a, o=o)
        self.maybe(0.4, "tempt", a)
        self.say("back", a, b)
        if self.chance(0.5):
            self.say("lie", a, o=o)
            self.say("restless", a, b)
            self.say("confess", a, o=o)
        else:
            self.say("truth", a, o=o)
        self.say("forgive", None, b)
        self.say("mend", a, b, o)
        self.say("return", a, o=o)
        self.close("truth")

    def quarrel(self):
        a, b, o, place = self.a, self.b, self.draw(w.THINGS), self.draw(w.OUTDOORS)
        self.friends()
        self.go_both(place)
        self.say("spot", a, b, o)
        self.say("mine", a)
        self.say("no_mine", None, b)
        self.say("sulk", a, b, o)
        self.maybe(0.6, "dull")
        self.say("turns", None, b)
        self.say("share", a, b, o)
        self.close("shared")

    def dark(self):
        a, b, o, place = self.a, self.b, self.draw(w.SIGNALS), self.draw(w.WILD)
        done, name = w.SIGNALS[o]
        self.friends()
        self.say("has", None, b, o=o)
        self.say("errand", a, p=place)
        self.look(place)
        self.say("late")
        self.say("no_way", a)
        self.maybe(0.5, "afraid", a)
        self.say("worry", a, b)
        self.say("signal", None, b, S=done)
        self.say("follow", a, b, N=name)
        self.say("thank", a, b)
        self.close("watch")

    def race(self):
        a, b, place = self.a, self.b, self.draw(w.PLACES)
        self.friends()
        self.say("boast", a)
        self.say("race", None, b, p=place)
        self.say("trip", a)
        self.say("help_up", a, b)
        self.say("tie", a, b, p=place)
        self.say("both_won", a)
        self.close("race")

    def monster(self):
        a, b, place = self.a, self.b, self.draw(w.DARK)
        self.friends()
        self.say("dread", a, p=place, X=w.DARK[place][0])
        self.say("monster", a, p=place)
        self.say("look_together", None, b)
        self.say("creep", a, b, p=place)
        self.say("only", C=w.DARK[place][1])
        self.say("laugh", a, b)
        self.close("brave")

    def ill(self):
        a, b, o = self.a, self.b, self.draw(w.COMFORTS)
        self.say("open_own", a, o=o, only=lambda t: not t.startswith("One"))
        self.say("friend", a, b)
        self.say("ill", None, b)
        self.maybe(0.4, "sad", b, only=lambda t: "sat" not in t)
        self.say("visit", a, o=o)
        self.say("give", a, b, o)
        self.maybe(0.4, "thank", b, a)
        self.say("well", None, b)
        self.say("return", b, o=o)
        self.close("kind")

    def seek(self):
        a, b = self.a, self.b
        place = self.draw(w.PLACES)
        other = self.draw(p for p in w.PLACES if {place, p} in w.NEAR)
        self.friends()
        self.say("play", a)
        self.say("hides", a, b, p=place)
        self.say("not_there", a, p=other)
        self.look(other)
        self.say("sneeze", p=place)
        self.say("found_you", a, b)
        self.maybe(0.5, "laugh", a, b)
        self.close("seek")

    def seed(self):
        a, b, place = self.a, self.b, self.draw(w.PLANTED)
        self.friends(days=True)
        self.say("plant", a, p=place)
        self.say("water", a)
        self.say("nothing")
        self.maybe(0.4, "sad", a)
        self.say("never", a)
        self.say("wait", None, b)
        self.say("water_on", a)
        self.say("bloom", p=place)
        self.maybe(0.5, "glad", a)
        self.close("patience")

    def thief(self):
        a, b, o, place = self.a, self.b, self.draw(w.LOOSE), self.draw(w.PLACES)
        self.say("open_own", a, o=o, only=lambda t: not t.startswith("One"))
        self.say("friend", a, b)
        self.say("gone", a, o=o)
        self.maybe(0.4, "sad", a)
        self.say("sees", a, b, o, p=place)
        self.say("thief", a, o=o)
        self.say("explain", None, b, L=w.LOOSE[o])
        self.say("sorry_shout", a, b)
        self.say("of_course", None, b)
        self.say("give", b, a, o)
        self.maybe(0.4, "thank", a, b)
        self.close("trust")


PLOTS = (
    "lost", "wish", "trade", "rain", "secret", "kept", "late", "broken", "quarrel", "dark", "race",
    "monster", "ill", "seek", "seed", "thief",
)  # fmt: skip
NOT = {"race": "shy", "monster": "brave"}  # who is not in it


def tell(seed, plot=None):
    """Tell the story of a seed: of one of `PLOTS`, or of the plot asked for; returns a `Story`.

    Raises ValueError for an unknown plot.
    """
    if plot not in (None, *PLOTS):
        raise ValueError(f"plot={plot!r} is not one of {', '.join(PLOTS)}")
    teller = _Teller(seed, plot)
    getattr(teller, teller.plot)()
    return Story(teller.plot, tuple(teller.sentences), teller.world, teller.log_probability)


def tokens(text):
    """Cut a story into words and signs."""
    return re.findall(r"\w+|[^\w\s]", text)


def joined(words):
    """Words and signs as text, the inverse of `tokens` for the storybook's texts."""
    text = re.sub(r" ([.,!?:;”])", r"\1", " ".join(words))
    return text.replace("“ ", "“")
