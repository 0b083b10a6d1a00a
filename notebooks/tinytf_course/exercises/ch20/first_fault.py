"""20.5 spot the broken story (★★☆, 8 minutes)

You have spotted faults by eye. Now write one rule of a checker: `my_first_fault(sentences)` returns
the number, counted from 0, of the first sentence of a story in which somebody gives, loses or
carries a thing that they do not have, and None if there is none.

<details><summary>The rule in detail</summary>

The story is a list of strings in five forms: `Mia had a kite.`, `Mia gave Ben the kite.`, `Ben lost
the kite.`, `Ben found the kite.` and `Ben carried the kite.` Anybody can have or find a thing, and
from then on it is theirs until they give or lose it, or somebody else has or finds it. A thing that
is given belongs to its receiver.

</details>

Hint: Keep the state of the world in a dictionary: for each thing, who has it now. A sentence first
has to agree with the dictionary; then it changes it.

Hint: `sentence.rstrip('.').split()` gives the words: the first is a person, the second the verb,
the last the thing.
"""

import random

from tinytf_course.expect import expect, tensor
from tinytf_course.words import short


def my_first_fault(sentences):
    """Return the number, from 0, of the first sentence that makes no sense; None if all do.

    sentences: strings such as "Mia had a kite.", "Mia gave Ben the kite.", "Ben lost the kite.",
    "Ben found the kite." and "Ben carried the kite."
    """
    holder = {}  # thing -> who has it
    for number, sentence in enumerate(sentences):
        who, verb, *others, thing = sentence.rstrip(".").split()
        if verb in ("had", "found"):
            holder[thing] = who
        elif holder.get(thing) != who:
            return number
        elif verb == "gave":
            holder[thing] = others[0]
        elif verb == "lost":
            holder[thing] = None
    return None


NONE_IS_A_RESULT = True


def _parts(sentence):
    """Who does what with which thing, and to whom it is given, if it is."""
    who, verb, *between, thing = sentence.rstrip(".").split()
    return who, verb, thing, between[0] if verb == "gave" else None


def _holder_before(sentences, number, thing):
    """Who has a thing before a sentence: read backwards to the last one that moves it."""
    for sentence in reversed(sentences[:number]):
        who, verb, moved, to = _parts(sentence)
        if moved == thing and verb != "carried":
            return {"had": who, "found": who, "gave": to, "lost": None}[verb]
    return None


def _owner_fault(sentences):
    """The first sentence that breaks the rule and why, from backward readings alone."""
    for number, sentence in enumerate(sentences):
        who, verb, thing, _ = _parts(sentence)
        holder = _holder_before(sentences, number, thing)
        if verb not in ("had", "found") and holder != who:
            where = f"it is with {holder}" if holder else "nobody has it"
            return number, f"Sentence {number} breaks the rule: {who} has no {thing}, {where}."
    return None, "No sentence breaks the rule."


def _story(seed, length=8):
    """A sound story in the five forms, about three people and three things."""
    rng, people = random.Random(seed), ["Mia", "Ben", "Olive"]
    holders, told = {}, []
    while len(told) < length:
        thing, who = rng.choice(["kite", "drum", "bell"]), rng.choice(people)
        if thing not in holders:
            holders[thing], sentence = who, f"{who} had a {thing}."
        elif holders[thing] is None:
            holders[thing], sentence = who, f"{who} found the {thing}."
        else:
            owner, verb = holders[thing], rng.choice(["gave", "gave", "carried", "lost"])
            other = rng.choice([name for name in people if name != owner])
            holders[thing] = {"gave": other, "carried": owner, "lost": None}[verb]
            sentence = f"{owner} {verb} {other + ' ' if verb == 'gave' else ''}the {thing}."
        told.append(sentence)
    return told


def _exchanged(seed):
    """The same story with another person in one sentence, who does not have the thing."""
    told, rng = _story(seed), random.Random(f"exchange {seed}")
    able = [i for i, sentence in enumerate(told) if _parts(sentence)[1] not in ("had", "found")]
    at = rng.choice(able)
    who, _, _, to = _parts(told[at])
    other = next(name for name in ("Mia", "Ben", "Olive") if name not in (who, to))
    return [*told[:at], told[at].replace(who, other, 1), *told[at + 1 :]]


def _spots(answer, *sentences, note=""):
    """The number that the answer gives, against the oracle's, with the oracle's reason."""
    expected, why = _owner_fault(sentences)
    got = answer(list(sentences))
    story = " ".join(f"({number}) {sentence}" for number, sentence in enumerate(sentences))
    where = f"for the story {story}".rstrip()
    if got is not None:
        tensor(got, where, "a number or None")
    right = got is expected if None in (got, expected) else got == expected
    message = f"{where}, you get {short(got)}, expected {expected}. {why}"
    expect(right, f"{message} {note}".rstrip())


def test_spots_one(answer):
    """the sentence is counted from 0, and it is the one that makes no sense"""
    note = "The first sentence is number 0."
    _spots(answer, "Mia had a kite.", "Mia carried the kite.", "Ben carried the kite.", note=note)


def test_spots_none(answer):
    """a story without a fault gives None"""
    _spots(answer, "Mia had a kite.", "Mia carried the kite.")
    _spots(answer)


def test_spots_at_once(answer):
    """it may be the very first"""
    note = "0 is a number like any other, and None is another answer."
    _spots(answer, "Ben carried the drum.", "Mia had a kite.", note=note)


def test_spots_gift(answer):
    """after a gift the thing is no longer with the giver, but with the receiver"""
    given_away = ["Mia had a kite.", "Mia gave Ben the kite."]
    _spots(answer, *given_away, "Ben carried the kite.", note="It was given to Ben.")
    _spots(answer, *given_away, "Mia carried the kite.", note="It was given away.")
    note = "It was given back."
    back = "Ben gave Mia the kite."
    _spots(answer, *given_away, back, "Mia carried the kite.", "Ben lost the kite.", note=note)


def test_spots_loss(answer):
    """what is lost is with nobody until somebody finds it"""
    lost = ["Mia had a bell.", "Mia lost the bell."]
    _spots(answer, *lost, "Mia carried the bell.", note="It is lost.")
    found = [*lost, "Ben found the bell."]
    _spots(answer, *found, "Ben gave Mia the bell.", "Mia carried the bell.", note="It was found.")
    _spots(answer, *found, "Mia gave Ben the bell.", note="It was found, but not by Mia.")


def test_spots_things(answer):
    """each thing has a holder of its own"""
    two = ["Mia had a kite.", "Ben had a drum."]
    _spots(answer, *two, "Mia carried the kite.", note="The drum is another thing.")
    _spots(answer, *two, "Mia carried the drum.", note="Mia has the kite only.")
    _spots(answer, *two, "Ben lost the drum.", "Mia gave Ben the kite.", "Ben carried the kite.")
    _spots(answer, two[0], "Mia carried the kettle.", note="Nobody had a kettle.")
    _spots(answer, two[0], "Max carried the kite.", note="Max is not Mia.")
    _spots(answer, two[0], "Mia carried the shadow.", note="The verb is the second word.")


def test_spots_taken(answer):
    """it is theirs until somebody else has or finds it"""
    first, found = "Mia had a kite.", "Ben found the kite."
    _spots(answer, first, "Ben had a kite.", "Ben carried the kite.", note="Ben has it now.")
    _spots(answer, first, found, note="Anybody can find a thing.")
    _spots(answer, first, found, "Mia carried the kite.", note="Ben has it now.")
    _spots(answer, first, found, "Ben gave Mia the kite.", "Mia lost the kite.")


def test_spots_anew(answer):
    """with every story the world begins anew"""
    answer(["Mia had a kite.", "Ben found the kite."])
    note = "What Ben had in an earlier story is forgotten."
    _spots(answer, "Ben carried the kite.", note=note)


def test_spots_first(answer):
    """of several faults it gives the first"""
    note = "There is a later one, too, and it is not asked for."
    faults = ["Mia had a kite.", "Ben lost the kite.", "Mia carried the kite.", "Ben carried the "]
    _spots(answer, *faults[:3], faults[3] + "kite.", note=note)


def test_spots_giver(answer):
    """a gift needs a giver who has it, and so does a loss"""
    _spots(answer, "Mia had a kite.", "Ben gave Olive the kite.", "Olive carried the kite.")
    _spots(answer, "Mia had a kite.", "Ben gave Mia the kite.")
    _spots(answer, "Mia had a kite.", "Ben lost the kite.")


def test_spots_generated(answer):
    """and so on, in stories of eight sentences, sound ones and ones with a person exchanged"""
    for seed in range(12):
        _spots(answer, *_story(seed))
        _spots(answer, *_exchanged(seed))


MISTAKES = r"""
the verb looked for in the whole sentence
    verb in ("had", "found") => "had" in sentence or "found" in sentence
    says: The verb is the second word
    A thing or a name may contain the letters of a verb, as “shadow” does. Split the sentence, and
    look at its second word.
counted from 1
    return number => return number + 1
    says: The first sentence is number 0
    The numbers start at 0, as `enumerate` counts. (The sentence after the fault would be wrong
    in the same way: the fault itself is asked for.)
the cause instead of the fault
    holder = {} => holder, last = {}, {}
    if verb in ("had", "found"): =>
        before, last[thing] = last.get(thing, number), number
        if verb in ("had", "found"):
    return number => return before
    says: The first sentence is number 0
    You point at the last sentence before it that mentions the thing. That one still makes
    sense; the fault is the first that does not.
0 taken for none
    return number => return number or None
    says: 0 is a number like any other
    `if fault` and `fault or None` take the number 0 for no fault. Ask `is None`.
what nobody has is taken for theirs
    holder.get(thing) => holder.get(thing, who)
    says: Nobody had a kettle
    A thing that the story has not mentioned is with nobody, and nobody can carry it.
-1 for none
    return None => return -1
    says: you get -1, expected None
    -1 is a sentence, the last, to anybody who uses it as an index. None is no sentence.
everybody keeps what they ever had
    {}  # thing -> who has it => set()
    holder[thing] = who => holder.add((who, thing))
    holder.get(thing) != who => (who, thing) not in holder
    holder[thing] = others[0] => holder.add((others[0], thing))
    holder[thing] = None => pass
    says: It was given away
    A set of who has had what only grows. A thing has one holder, who changes.
a gift stays with the giver
    holder[thing] = others[0] => pass
    says: It was given to Ben
    After `gave` the thing belongs to the other person: change the dictionary.
what is lost is still there
    holder[thing] = None => pass
    says: It is lost
    After `lost` nobody has the thing.
found, and still nobody's
    ("had", "found") => ("had",)
    says: expected None. No sentence breaks the rule. It was found
    Anybody may find a thing, and from then on it is theirs.
always the first owner's
    holder[thing] = who => holder[thing] = holder.get(thing) or who
    says: Ben has it now
    Somebody else may have or find a thing that is somebody's, and then it is theirs.
only what is lost can be found
    if verb in ("had", "found"): =>
        if verb == "found" and holder.get(thing):
            return number
        if verb in ("had", "found"):
    says: Anybody can find a thing
    To have or find a thing is never a fault: only giving, losing and carrying need it.
the former story remembered
    my_first_fault(sentences): => my_first_fault(sentences, holder={}):
    holder = {}  # thing -> who has it => pass
    says: an earlier story is forgotten
    The dictionary outlives the call, as a default value or a global does: make it in the function.
one holder for all things
    .split() => .split()[:-1] + ["it"]
    says: The drum is another thing
    You remember who had something last, not what: one entry for each thing.
the last fault
    holder = {} => holder, found = {}, None
    return number => found = number
    return None => return found
    says: it is not asked for
    Return at once: after the first fault the state of the world is not known any more.
only what is carried is checked
    elif holder.get(thing) => elif verb == "carried" and holder.get(thing)
    says: Ben has no kite, it is with Mia
    Giving and losing need the thing, too, not only carrying it.
"""

HARMLESS = r"""
return None => (nothing)
    a function that ends returns None
… => if verb in ('found', 'had'):
    the order of the two does not matter
… => …sentence.split()
    every thing keeps its full stop, and is still the same thing
… => …sentence.rstrip().split()
    every thing keeps its full stop
"""
