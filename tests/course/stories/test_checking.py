"""The storybook: its stories make sense, and texts that don't are found out."""

import io
import math
import random

import pytest

from tinytf_course.__main__ import main
from tinytf_course.stories import PLOTS, answers, check, is_right, plots, tell
from tinytf_course.stories import words as w
from tinytf_course.stories.page import Page
from tinytf_course.stories.templates import TEMPLATES, readings, sentences
from tinytf_course.stories.world import RULES

STORIES = [tell(seed, plot) for plot in PLOTS for seed in range(12)]
KITE = (
    "Once there was a shy girl named Mia who had a kite. One day, Mia walked to the meadow. "
    "Mia put the kite down for a moment and forgot it. "
    "Just then, a clever bear named Bruno came along. “What is the matter?” asked Bruno. "
    "“I have lost my kite,” said Mia. “I will help you look,” said Bruno. "
    "They searched high and low. “Here it is!” cried Bruno, and held up the kite. "
    "With a smile, Bruno handed Mia the kite. Four eyes see more than two."
)


def test_every_story_makes_sense_and_ends():
    for story in STORIES:
        verdict = check(story.text)
        assert verdict.makes_sense, verdict
        assert verdict.sentences == story.sentences
        assert verdict.world == story.world
        assert len(verdict.worlds) == len(story.sentences) + 1
        assert plots.joined(plots.tokens(story.text)) == story.text


def test_a_seed_gives_one_story_and_seeds_give_many():
    assert tell(5).text == tell(5).text
    assert len({tell(seed).text for seed in range(300)}) == 300
    assert {tell(seed).plot for seed in range(300)} == set(PLOTS)
    with pytest.raises(ValueError, match="plot='odyssey' is not one of lost, wish"):
        tell(0, "odyssey")


def test_every_template_is_used_and_read_back():
    said = {}
    for seed in range(60):
        for plot in PLOTS:
            for sentence in tell(f"all/{seed}", plot).sentences:
                for event, _ in readings(sentence):
                    said.setdefault(event, set()).add(sentence)
    assert set(said) >= set(TEMPLATES)


class Scripted(random.Random):
    """Draws as a seed says at first, and then by a script: one place of a choice after another."""

    seeded, script, teller = 10**6, (), None

    def _place(self, count, told):
        self.sizes = [*getattr(self, "sizes", ()), count]
        at = len(self.sizes) - 1 - self.seeded
        if at == 0:
            self.beginning = self.teller.log_probability + told
        return None if at < 0 else (*self.script, *(0,) * 99)[at]

    def choice(self, options):
        place = self._place(len(options), math.log(len(options)))  # which is counted already
        return super().choice(options) if place is None else options[place]

    def random(self):
        place = self._place(2, 0)
        return super().random() if place is None else (0.0, 0.999)[place]

    def getrandbits(self, k):  # or choice() would draw by random()
        return super().getrandbits(k)


@pytest.mark.parametrize("plot", ["trade", "lost", "race"])
def test_the_probabilities_of_all_texts_with_one_beginning_add_up(plot, monkeypatch):
    whole = next(s for s in range(99) if "missed" not in tell(s, plot).text)
    made, begin = [], plots._Teller.__init__

    def noted(self, seed, plot):
        Scripted.teller = self
        begin(self, seed, plot)
        made.append(self.rng)

    monkeypatch.setattr(plots._Teller, "__init__", noted)
    monkeypatch.setattr(plots.random, "Random", Scripted)
    tell(whole, plot)
    monkeypatch.setattr(Scripted, "seeded", len(made[-1].sizes) - 5)
    found, scripts = {}, [()]
    while scripts:
        monkeypatch.setattr(Scripted, "script", scripts.pop())
        story = tell(whole, plot)
        found[story.text] = story.log_probability - made[-1].beginning
        sizes, script = made[-1].sizes[Scripted.seeded :], Scripted.script
        for at in range(len(script), len(sizes)):
            scripts += [(*script, *(0,) * (at - len(script)), k) for k in range(1, sizes[at])]
    assert len(found) > 3
    assert sum(map(math.exp, found.values())) == pytest.approx(1)


# ---- texts that make no sense

HANDED, SEARCHED = "With a smile, Bruno handed Mia the kite.", "They searched high and low."
FOUND = "“Here it is!” cried Bruno, and held up the kite."
FORGOT = "Mia put the kite down for a moment and forgot it."
BROKEN = {
    "grammar": KITE.replace("walked", "wlked"),
    "known": KITE.replace("my kite,” said Mia", "my kite,” said Nora"),
    "pronoun": KITE.replace(" Four", " Mia was so happy that he turned a somersault. Four"),
    "owner": KITE.replace(HANDED, "With a smile, Mia handed Bruno the kite."),
    "place": KITE.replace(FOUND, "At last Bruno found the kite by the river."),
    "promise": KITE.replace(SEARCHED, "").replace(FOUND, "").replace(HANDED, ""),
    "cause": KITE.replace(SEARCHED, ""),
    "feeling": KITE.replace(FORGOT, "Mia was sad."),
    "speech": KITE.replace("help you look,” said Bruno", "help you look,” said Mia"),
    "ending": KITE.replace(" Four eyes see more than two.", ""),
    "plan": "Once there was a shy girl named Mia who had a kite. Next door lived a clever bear "
    "named Bruno. Mia and Bruno wanted to take the kite to the hill the next day. But just as they "
    "set out, it began to rain. “Then we will go to the barn instead,” said Bruno. They hurried to "
    "the bakery.",
}


def test_the_story_that_the_others_break_makes_sense():
    assert str(check(KITE)) == "It makes sense."


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_finds_its_fault(rule):
    verdict = check(BROKEN[rule])
    assert verdict.rule == rule, verdict
    assert not verdict.makes_sense
    assert verdict.why in str(verdict)


def corrupted(story, kind, rng):
    """A story with one thing wrong, None where that can't be."""
    parts, words = list(story.sentences), plots.tokens(story.text)
    a, b = story.world.people
    if kind == "cut":
        return " ".join(parts[: rng.randrange(2, len(parts))])
    if kind == "shuffled":
        return " ".join(rng.sample(parts, len(parts)))
    of_kind = {
        "name": {a: (b,), b: (a,)},
        "thing": {noun: [n for n in w.THINGS if n != noun] for noun in w.THINGS},
        "pronoun": {
            "he": ("she",),
            "she": ("he",),
            "He": ("She",),
            "She": ("He",),
            "him": ("her",),
        },
    }[kind]
    places = [i for i, word in enumerate(words) if word in of_kind]
    if not places:
        return None
    i = rng.choice(places)
    words[i] = rng.choice(of_kind[words[i]])
    return plots.joined(words)


@pytest.mark.parametrize(
    ("kind", "share"),
    [("cut", 1), ("shuffled", 1), ("thing", 0.99), ("name", 0.93), ("pronoun", 0.93)],
)
def test_corrupted_stories_are_caught(kind, share):
    rng = random.Random(1)
    tried = [(s, corrupted(s, kind, rng)) for s in STORIES]
    wrong = [text for s, text in tried if text not in (None, s.text)]
    assert len(wrong) > 100
    assert sum(not check(text).makes_sense for text in wrong) >= share * len(wrong)


def test_no_text_ends_the_checker():
    rng = random.Random(2)
    pool = [sentence for story in STORIES for sentence in story.sentences]
    people = [list(story.world.people) for story in STORIES]
    for n in range(400):
        noise = "".join(chr(rng.randrange(1, 0x3000)) for _ in range(rng.randrange(200)))
        mixed = list(STORIES[n % len(STORIES)].sentences[:2])
        a, b = people[n % len(STORIES)]
        for sentence in rng.sample(pool, 8):
            for name in w.KINDS:
                sentence = sentence.replace(name, rng.choice((a, b)))
            mixed.append(sentence)
        for text in (noise, " ".join(mixed), " ".join(rng.sample(pool, 5)), "“" * n, "Mia." * n):
            assert not check(text).makes_sense or text in pool
    assert check("").rule == check("“").rule == "ending"
    assert check(None).rule == "ending"


def test_sentences_end_where_nothing_goes_on():
    text = "“Why?” asked Ben. “Look!” A cow!  “Yes, now!” said Mia, and ran. Then"
    assert sentences(text) == (
        ["“Why?” asked Ben.", "“Look!”", "A cow!", "“Yes, now!” said Mia, and ran."],
        "Then",
    )


# ---- questions


def test_questions_have_their_answers_at_every_point():
    worlds = check(KITE).worlds
    assert answers(worlds[0]) == {}
    start, lost, end = answers(worlds[1]), answers(worlds[3]), answers(worlds[-1])
    assert start["Who has the kite?"][0] == "Mia"
    assert start["Where is Mia?"] == ("at home", "Mia is at home")
    assert "Who has the kite?" not in lost
    assert is_right("In the meadow.", lost["Where is the kite?"])
    assert is_right("Because Mia lost the kite", lost["Why is Mia sad?"])
    assert not is_right("because it rained", lost["Why is Mia sad?"])
    assert is_right("a shy girl", lost["Who is Mia?"])
    assert is_right("because Mia got the kite", end["Why is Mia happy?"])
    assert end["Whose is the kite?"][1] == "Mia"


def test_wishes_and_promises_can_be_asked_for():
    wish = next(tell(seed, "wish") for seed in range(9))
    world = check(wish.text).worlds[1]
    name, thing = next(iter(world.wants.items()))
    assert is_right(f"{name} wants the {thing}", answers(world)[f"What does {name} want?"])
    kept = check(tell(3, "kept").text)
    asked = [q for world in kept.worlds for q in answers(world) if q.startswith("What has")]
    assert asked
    for world in kept.worlds:
        for question, right in answers(world).items():
            assert question.endswith("?")
            assert all(is_right(wording.upper() + " .", right) for wording in right)


def test_answers_tell_no_more_than_the_story_has_told():
    def asked(plot, seed, event):
        """What can be asked after an event of a story, and the story's people."""
        story = tell(seed, plot)
        world = next(world for world in check(story.text).worlds if event in world.happened)
        return answers(world), list(story.world.people)

    found, _ = asked("thief", 0, "gone")
    assert not [question for question in found if question.startswith("Who has")]
    found, (_, b) = asked("thief", 0, "sees")
    assert [right[0] for question, right in found.items() if question.startswith("Who has")] == [b]
    found, _ = asked("lost", 11, "no_more")
    assert not [question for question in found if question.startswith("Where is the")]
    found, (_, b) = asked("trade", 1, "miss_too")
    assert f"Why is {b} sad?" in found
    found, _ = asked("quarrel", 0, "share")
    assert [right[0] for question, right in found.items() if question.startswith("Who has")] == [
        "both"
    ]
    found, _ = asked("broken", 0, "lend")
    assert not [question for question in found if question.startswith("What has")]
    end = check(tell(2, "secret").text).world
    home = [name for name, person in end.people.items() if person.place == "home"]
    assert all(is_right("at home", answers(end)[f"Where is {name}?"]) for name in home)


# ---- the command


def test_the_command_tells_and_checks(capsys, tmp_path, monkeypatch):
    assert main(["story", "--seed", "3", "--plot", "rain"]) == 0
    assert capsys.readouterr().out.strip() == tell(3, "rain").text
    (tmp_path / "kite.txt").write_text(KITE, encoding="utf-8")
    assert main(["story", str(tmp_path / "kite.txt")]) == 0
    assert capsys.readouterr().out.endswith("✓ it makes sense\n")
    monkeypatch.setattr("sys.stdin", io.StringIO(BROKEN["owner"]))
    assert main(["story", "-"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[-2:] == [
        "✗ With a smile, Mia handed Bruno the kite.", "✗ owner: Mia does not have the kite",
    ]  # fmt: skip
    assert main(["story", KITE * 9]) == 1  # too long for a path
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xff")
    assert main(["story", str(tmp_path / "bytes")]) == 2
    assert "can't be read" in capsys.readouterr().err


# ---- the page


def test_a_page_tells_what_each_sentence_changes():
    page = Page(KITE)
    told = dict(page.rows)
    assert told[page.verdict.sentences[0]] == ["Mia: at home", "Mia has the kite"]
    assert told["One day, Mia walked to the meadow."] == ["Mia: in the meadow"]
    assert told[FORGOT] == ["Mia is sad", "the kite lies in the meadow", "the kite is lost"]
    assert told[SEARCHED] == []
    assert repr(page).endswith("✓ it makes sense")
    assert page._repr_html_().count("<tr>") == len(page.rows) + 2  # a head and the verdict


def test_a_page_marks_the_first_fault_and_knows_nothing_after_it():
    page = Page(BROKEN["owner"] + " <b>Never.</b>")
    shown = page._repr_html_()
    assert page.rows[page.verdict.sentence] == ("With a smile, Mia handed Bruno the kite.", None)
    assert "✗ With a smile, Mia handed Bruno the kite." in repr(page)
    assert "✗</b> owner: Mia does not have the kite" in shown
    assert shown.count("wavy") == 1
    assert "&lt;b&gt;Never.&lt;/b&gt;" in shown
    assert "the story has no end" in Page(BROKEN["ending"])._repr_html_()
    assert "ending" in Page("")._repr_html_()
