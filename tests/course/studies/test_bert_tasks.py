"""BERT's tasks: examples as tensors, heads, and baselines checked by hand."""

import pytest
import torch

from tinytf.related.bert_heads import SentenceClassifier, SpanFinder, TokenTagger
from tinytf.text.words import WordTokenizer
from tinytf_course.lessons.understanding import SECTIONS, Question, Tagged
from tinytf_course.phrasebook import Phrasebook
from tinytf_course.studies import bert as study
from tinytf_course.studies import bert_tasks

WORDS = WordTokenizer(Phrasebook().source_words)


def test_answers_are_placed_among_the_ids():
    one = Question(("what", "ate", "?"), ("the", "cat", "ate", "the", "fish"), 0, 1, "subject")
    two = Question(("what", "slept", "on", "?"), ("a", "dog", "slept", "on", "it"), 4, 4, "it")
    task = bert_tasks.answer_task(WORDS, [one, two])
    for row, example in enumerate((one, two)):
        start, end = task.gold[row].tolist()
        said = WORDS.decode(task.ids[row, start : end + 1])
        assert said == list(example.text[example.start : example.end + 1])
        assert task.segments[row, start : end + 1].all()


def test_tags_stand_under_their_words():
    examples = [Tagged(("in", "may", "she", "ran"), (0, 1, 0, 0)), Tagged(("2", "may"), (1, 2))]
    task = bert_tasks.date_task(WORDS, examples)
    assert task.gold.tolist() == [[-1, 0, 1, 0, 0, -1], [-1, 1, 2, -1, -1, -1]]
    assert ((task.ids >= 3) == (task.gold >= 0)).all()


def test_every_task_gets_its_head_and_what_is_right_is_counted():
    dates = bert_tasks.date_task(WORDS, [Tagged(("in", "may", "she", "ran"), (0, 1, 0, 0))] * 3)
    answers = bert_tasks.answer_task(WORDS, [Question(("what", "?"), ("a", "dog"), 0, 1, "it")] * 3)
    ids = dates.ids
    sections = bert_tasks.Task(ids, torch.zeros_like(ids), torch.tensor([0, 1, 5]))
    for task, kind in (
        (dates, TokenTagger), (answers, SpanFinder), (sections, SentenceClassifier)
    ):  # fmt: skip
        model = bert_tasks.head_for(task, study.build(len(WORDS) + 1).bert)
        assert isinstance(model, kind)
        tuned = bert_tasks.finetune(model, task, steps=25, lr=5e-3)
        expected = 1 / 3 if task is sections else 1.0  # three equal texts have one section
        assert bert_tasks.right(tuned, task).float().mean().item() == pytest.approx(expected)
    assert model.output.out_features == len(SECTIONS)


def test_a_frozen_body_does_not_move():
    task = bert_tasks.date_task(WORDS, [Tagged(("in", "may"), (0, 1))])
    bert = study.build(len(WORDS) + 1).bert
    before = {name: p.clone() for name, p in bert.named_parameters()}
    bert_tasks.finetune(bert_tasks.head_for(task, bert), task, steps=3, frozen=True)
    assert all(torch.equal(before[name], p) for name, p in bert.named_parameters())
    bert_tasks.finetune(bert_tasks.head_for(task, bert), task, steps=3)
    assert not torch.equal(before["embedding.weight"], bert.embedding.weight)


def test_baselines_can_be_checked_by_hand():
    tagged = [Tagged(("in", "may"), (0, 1)), Tagged(("2", "may"), (1, 2))]
    train = bert_tasks.date_task(WORDS, [*tagged, Tagged(("on", "may"), (0, 1))])
    test = bert_tasks.date_task(WORDS, tagged)
    grades = bert_tasks.Grades(train, test, torch.ones(2, dtype=torch.bool))
    assert bert_tasks.most_frequent_tags(grades, 3) == 0.5  # may is B more often
    questions = [
        Question(("what", "?"), ("a", "cat", "ate", "it", "because", "x"), 0, 1, "it"),
        Question(("what", "?"), ("a", "cat", "ate", "it", "because", "x"), 3, 3, "it"),
    ]
    assert bert_tasks.first_phrase(questions) == 0.5
    assert study.shared_words(("the", "cat"), ("the", "cat", "cat"), {"the"}) == 1
    ids = torch.tensor([[1, 7, 7, 2], [1, 8, 8, 2]])
    bags = bert_tasks.Task(ids, torch.zeros_like(ids), torch.tensor([0, 1]))
    assert bert_tasks.naive_bayes(bags, bags, 9) == 1.0
    swapped_bags = bags._replace(gold=torch.tensor([1, 0]))
    assert bert_tasks.naive_bayes(swapped_bags, bags, 9) == 0.0
    short_and_long = bert_tasks.Task(
        torch.tensor([[1, 7, 2, 0, 0, 0], [1, 8, 8, 8, 8, 2]]), bags.segments, bags.gold
    )
    one = bert_tasks.Task(torch.tensor([[1, 8, 2, 0, 0, 0]]), bags.segments, torch.tensor([1]))
    assert bert_tasks.naive_bayes(short_and_long, one, 9) == 1.0  # padding has no vote
