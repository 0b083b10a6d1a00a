"""The code of the study of BERT: tasks as tensors, baselines, and training that repeats."""

import torch

from tinytf.text.words import WordTokenizer
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies import bert as study

WORDS = WordTokenizer(Phrasebook().source_words)


def test_pretraining_repeats_and_stops_on_its_way():
    text = study.life_text(WORDS, "another person", 30, 0)
    runs = [
        study.pretrain(study.build(len(WORDS) + 1), text, 20, pairs=1.0, size=4, until=until)
        for until in (None, None, 5)
    ]
    assert runs[0] == runs[1]
    assert runs[2] == runs[0][:5]


def test_wrong_pairs_of_lives_are_about_others():
    text = study.life_text(WORDS, "another person", 100, 0)
    persons = text.ids[:, 2], text.ids[text.ids.eq(WORDS.encode("my")[0])].view(-1, 2)
    assert persons[1].size(0) == len(text.ids)
    second = torch.stack(
        [row[seg == 1][1] for row, seg in zip(text.ids, text.segments, strict=True)]
    )
    assert torch.equal(persons[0] == second, text.label == 0)
