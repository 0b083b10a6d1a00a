"""Nonsense that an attacker made of the storybook's own sentences; each once passed the checker."""

import pytest

from tinytf_course.stories import check

TOM = "Once there was a clever boy named Tom."
OK = "Once there was a clever boy named Tom who had a kite."
F = "His best friend was a gentle girl named Nora."
LEND = "Nora had a kite. “May I borrow your kite?” asked Tom. Nora lent Tom the kite."
SEEK = (
    "“Let us play hide and seek,” said Tom. Nora tiptoed away and hid in the garden. Then someone "
    "sneezed in the garden. “I have found you!” cried Tom."
)
RACE = (
    "“I am much faster than you,” said Tom. “Shall we race to the river?” asked Nora. Halfway "
    "there, Tom tripped over a root. But Nora stopped and helped Tom up. They reached the river at "
    "the same moment."
)
MONSTER = (
    "Tom never went to the barn, because something in there went knock, knock. “There is a monster "
    "in the barn,” said Tom. “Let us look together,” said Nora. They crept to the barn, step by "
    "step. It was only an old door in the wind."
)
SWAP = (
    "Nora had a hat. “I will give you my kite for your hat,” said Tom. “Yes, let us trade!” said "
    "Nora. So Tom gave Nora the kite, and Nora gave Tom the hat."
)
FOUND, WON = "A friend is worth every search.", "Those who arrive together win together."
BRAVE, TRADED = "Most monsters are afraid of two friends.", "A good trade makes two people happy."
LOST = f"{TOM} {F} LIGHTS Tom went to the hill to pick flowers. Soon the sun went down."

TEXTS = {
    "a story that the parts make": ("", f"{TOM} {F} {SEEK} {FOUND}"),
    "another": ("", f"{TOM} {F} {RACE} {WON}"),
    "a third": ("", f"{TOM} {F} {MONSTER} {BRAVE}"),
    "a fourth": ("", f"{OK} {F} {SWAP} {TRADED}"),
    "nobody's thing is gone": ("owner", "Once there was a clever boy named Tom who wished for a "
                               "kite. One morning, the kite was gone."),
    "looked at twice": ("cause", f"{TOM} {F} {MONSTER} “Let us look together,” said Nora."),
    "said twice": ("cause", f"{TOM} {F} {RACE} Halfway there, Tom tripped over a root."),
    "a race in bed": ("place", f"{TOM} {F} One day, Nora was ill and had to stay in bed. {RACE}"),
    "ill to the end": ("ending", f"{OK} {F} {SWAP} One day, Nora caught a cold and could not "
                       f"go out. {TRADED}"),
    "a lost way found": ("place", f"{TOM} {F} {LEND} Tom took the kite to the hill. Soon the sun "
                                  f"went "
                         "down. Tom could not find his way home. Tom went back to Nora."),
    "the light of a drum": ("cause", LOST.replace("LIGHTS", "Nora had a lantern. Nora had a drum.")
                            + " Tom could not find his way home. Then Nora beat the drum, again "
                              "and "
                            "again. Tom followed the light all the way home."),
    "an open quarrel": ("ending", f"{TOM} {F} They went to the hill together. On the ground, they "
                        "found a kite. “It is mine! I saw it first,” said Tom. “No, it is mine!” "
                        f"said Nora. {RACE} {WON}"),
    "found, then not there": ("cause", f"{TOM} {F} {SEEK} First Tom looked in the barn, but found "
                              "nobody."),
    "two plans": ("plan", f"{TOM} {F} Tom planted a seed in the garden. {MONSTER}"),
    "agreed, and no trade": ("ending", f"{OK} {F} Nora had a hat. “I will give you my kite for "
                             f"your hat,” said Tom. “Yes, let us trade!” said Nora. {SEEK} "
                             f"{FOUND}"),
    "a wish that was there": ("plan", "Once there was a clever boy named Tom who wished for a kite."
                              f" {F} Tom had a kite."),
    "seen, and denied": ("speech", f"{TOM} {F} {LEND} By accident, Tom dropped the kite, and it "
                         "broke. Nobody had seen it."),
    "the evening after the stars": ("cause", f"{TOM} {F} {LEND} Tom took the kite to the hill. "
                                             f"Then "
                                    "the first star came out. Then the sun turned red."),
    "next door, in the forest": ("place", f"{TOM} Tom went to the forest. Next door lived a gentle "
                                 "girl named Nora."),
    "laughing apart": ("place", f"{TOM} {F} {SEEK} Nora went to the river. They laughed until "
                                f"their "
                       "bellies hurt."),
    "thanked by whom she called home": ("feeling", LOST.replace("LIGHTS", "Nora had a drum.")
                    + " Tom could not find his way home. Then Nora beat the drum, again and "
                    "again. Tom followed the sound all the way home. “Thank you, Tom,” said Nora."),
    "back to whom one never left": ("place", f"{TOM} {F} {LEND} “I promise to bring it back "
                    "before dark,” said Tom. Tom took the kite to the hill. Nora went "
                    "back to Tom."),
    "sorry for no promise": ("speech", f"{TOM} {F} {LEND} Tom took the kite to the hill. Then the "
                    "sun turned red. But Tom lay down to rest for a moment, and slept until "
                    "the next morning. Tom went back to Nora. “I fell asleep and broke my "
                    "promise,” said Tom."),
    "two lost things, both found": ("", "Once there was a clever boy named Tom who had a kite. Tom "
                    "had a ball. Tom took the kite to the hill. Tom ran after a butterfly and lost "
                    "the kite. Tom put the ball down for a moment and forgot it. Just then, a "
                    "gentle girl named Nora came along. “I have lost my kite,” said Tom. “I have "
                    "lost my ball,” said Tom. They searched high and low. “Here it is!” cried Tom, "
                    "and held up the ball. “Here it is!” cried Tom, and held up the kite. Four "
                    "eyes see more than two."),
    "a wish that is shared": ("", "Once there was a clever boy named Tom who wished for a kite. "
                    f"{F} They hurried to the hill. On the ground, they found a kite. “I want it "
                    "for myself,” said Tom. “But I saw it, too,” said Nora. “Let us take turns,” "
                    "said Nora. So Tom had the kite in the morning, and Nora had it in the "
                    "evening. Sharing is twice the fun."),
    "a wish still open": ("ending", "Once there was a clever boy named Tom who wished for a kite. "
                    f"{F} Nora had a kite. {SEEK} {FOUND}"),
    "thief of nothing": ("cause", f"{OK} {F} “Thief!” shouted Tom."),
}  # fmt: skip


@pytest.mark.parametrize("what", TEXTS)
def test_nonsense_is_found(what):
    rule, text = TEXTS[what]
    verdict = check(text)
    assert verdict.rule == rule, verdict


def test_a_text_that_is_no_story_is_told_at_once():
    help_me = " “I will help you look,” said Nora." * 400
    for text in (OK + " " + F + help_me, "a" * 10**6, ". " * 10**5, "“.” " * 10**5):
        verdict = check(text)
        assert verdict.rule in ("ending", "grammar", "cause")
    assert "60 sentences or 20,000 letters" in check("a" * 10**6).why
