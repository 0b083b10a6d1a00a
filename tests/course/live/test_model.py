"""The forward pass in JavaScript computes what tinytf computes, also when parts are changed."""

import base64
import random
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch
from live_support import in_javascript

from tinytf import Translator, ablate_heads, record, replace
from tinytf.apps.writer import STORYTELLER, Writer
from tinytf.decoding.sampling import Sampling
from tinytf.inspect import attention_layers
from tinytf.text.words import BOS, EOS
from tinytf.transformer import Memory
from tinytf_course.lessons.ablation import ablated, sublayers
from tinytf_course.phrasebook import Phrasebook

DRIVER = Path(__file__).with_name("driver.js")
PLAIN, CHANGED = 60, 240  # sentences


@pytest.fixture(scope="module")
def translator():
    return Translator.load(device="cpu")


def changes(sentence, names, heads, draw):
    """Interventions drawn at random, each kind in about half of the sentences."""
    length = len(sentence.split()) + 1
    places = list(range(length))
    orders = (draw.sample(places, length), [0] * length, [*places[1:-1], 0, length - 1])
    drawn = {
        "off": [f"{name}.{draw.randrange(heads)}" for name in draw.sample(names[0], 3)],
        "hidden": draw.sample(places[:-1], draw.randint(1, 2) if length > 2 else 0),
        "positions": draw.choice(orders),
        "temperature": draw.choice((0.25, 0.5, 2, 4)),
    }
    if draw.random() < 0.3:
        drawn["off"] = draw.sample(names[1], draw.randint(1, 3))
    kept = [kind for kind in drawn if draw.random() < 0.5] or [draw.choice(list(drawn))]
    return {kind: drawn[kind] for kind in kept}


def in_python(translator, task, tgt):
    """The logits and maps where the model reads the source, changed, and writes tgt."""
    model = translator.model.eval()
    ids = torch.tensor([[*translator.source.encode(task["sentence"]), EOS]])
    mask = torch.ones(1, 1, 1, ids.size(1), dtype=torch.bool)
    mask[..., task.get("hidden", [])] = False
    places = task.get("positions") or list(range(ids.size(1)))
    heads = set(task.get("off", [])) - set(sublayers(model))
    with ExitStack() as stack, torch.no_grad():
        sharpness = 1 / task.get("temperature", 1)
        for name in attention_layers(model):
            if sharpness != 1:
                # softmax(s / T) is softmax(s)^(1 / T), divided by its sum
                stack.enter_context(replace(model, name, lambda w: normed(w**sharpness)))
            silent = [int(part.rpartition(".")[2]) for part in heads if part.startswith(name)]
            stack.enter_context(replace(model, name, ablate_heads(*silent)))
        stack.enter_context(ablated(model, set(task.get("off", [])) - heads))
        seen = stack.enter_context(record(model))
        x = model.src_embedding(ids) + model.positions.table[places]
        memory = Memory(model.encoder(x, mask), mask)
        logits = model.output(model.decode(torch.tensor([tgt]), memory))[0]
        return logits.numpy(), {name: w[0].numpy() for name, w in seen.items()}


def normed(weights):
    return weights / weights.sum(dim=-1, keepdim=True)


def numbers(text):
    return np.frombuffer(base64.b64decode(text), np.float32)


def tasks(translator):
    draw = random.Random(7)
    pairs = Phrasebook().sample(PLAIN + CHANGED, "test", seed=11)
    names = list(attention_layers(translator.model)), list(sublayers(translator.model))
    heads = translator.model.config.num_heads
    return [
        {"sentence": p.english} | (changes(p.english, names, heads, draw) if i >= PLAIN else {})
        for i, p in enumerate(pairs)
    ]


def test_300_sentences_are_translated_as_tinytf_does_plain_and_changed(translator, tmp_path):
    asked = tasks(translator)
    answers = in_javascript(DRIVER, tmp_path, translations=asked)["translations"]
    plain = translator.batch([task["sentence"] for task in asked[:PLAIN]])
    for answer, expected in zip(answers, plain):
        assert tuple(answer["target"]) == expected.target
        assert np.log(answer["probs"]).mean() == pytest.approx(expected.mean_log_prob, abs=1e-5)
    other = 0
    for task, answer in zip(asked, answers, strict=True):
        ids = [translator.target._ids[word] for word in answer["target"]]
        logits, maps = in_python(translator, task, [BOS, *ids[:-1]])
        np.testing.assert_allclose(
            numbers(answer["logits"]).reshape(logits.shape), logits, atol=2e-4, err_msg=str(task)
        )
        choice = logits[:, EOS:].argmax(axis=1) + EOS
        gaps = logits[range(len(ids)), choice] - logits[range(len(ids)), ids]
        assert (gaps < 2e-4).all(), task  # the same word, but where two are equally likely
        for name, weights in maps.items():
            got, rows = numbers(answer["maps"][name]), weights.swapaxes(0, 1)  # T rows of H
            if "decoder" in name and "self" in name:  # where row t holds the t + 1 words so far
                rows = [row[:, : t + 1] for t, row in enumerate(rows)]
            expected = np.concatenate([row.ravel() for row in rows])
            np.testing.assert_allclose(got, expected, atol=1e-4, err_msg=f"{name} of {task}")
        other += "probs" in answer and min(answer["probs"]) < 0.5
    assert len(asked) == 300
    assert (
        other > CHANGED / 4
    )  # where the model is in doubt: else the interventions would be no test


def damaged(word, draw):
    """A word as somebody may mistype it."""
    place = draw.randrange(len(word) + 1)
    letter = draw.choice("aeioustrn'")
    return draw.choice(
        (
            word[:place] + letter + word[place:], word[:place] + word[place + 1 :],
            word[:place] + letter + word[place + 1 :], word.title(), word + draw.choice("?!.,"),
            word + draw.choice(("'s", "n't", "’s")), f"“{word}”", word[::-1],
        )
    )  # fmt: skip


def said(translator, sentence):
    """The ids of a sentence, or the words in which tinytf refuses it."""
    try:
        [ids] = translator._encode([sentence])
    except ValueError as error:
        return {"error": str(error)}
    return {"ids": ids}


def test_what_cannot_be_read_gets_the_words_that_tinytf_says(translator, tmp_path):
    draw = random.Random(3)
    words = [damaged(draw.choice(translator.source.words), draw) for _ in range(300)]
    sentences = [f"the {word} sat" for word in words] + [
        "", "   ", "don't go", "can't", "— the cat", "😀", "<b>cat</b>", "שלום", "<pad>",
        "the 3 cats", "the 1 cat", "on 3 march 2021", "in 2021", "at 5 o'clock", "the 99 cats",
        "x" * 300,
    ]  # fmt: skip
    answers = in_javascript(DRIVER, tmp_path, hints=sentences)["hints"]
    refused = 0
    for sentence, answer in zip(sentences, answers, strict=True):
        assert answer == said(translator, sentence)
        refused += "unknown word" in answer.get("error", "")
    assert refused > 200


def test_a_sentence_that_is_too_long_is_refused(translator, tmp_path):
    longest = " ".join(["the cat"] * 31 + ["sat"])  # 63 words and <eos> are max_len=64
    [fits, long] = in_javascript(DRIVER, tmp_path, translations=[
        {"sentence": longest}, {"sentence": f"{longest} on"}])["translations"]  # fmt: skip
    assert "target" in fits
    assert long["error"] == "the sentence has 64 words, and the model reads at most 63: shorten it"


RULES = [
    {},
    {"temperature": 0.5},
    {"topK": 5},
    {"p": 0.9},
    {"temperature": 2, "topK": 30, "p": 0.8},
]


def test_the_writer_reads_scores_and_rules_out_as_tinytf_does(tmp_path):
    writer = Writer.load(STORYTELLER, device="cpu")
    openings = ["", "One morning,", "One morning, a girl named Mia", "  two  spaces\n\nand lines ",
                "naïve café 漢字 😀", "it's 1234!", "a" * 2000]  # fmt: skip
    texts = [{"text": text, "rule": rule} for text in openings for rule in RULES]
    answers = in_javascript(DRIVER, tmp_path, texts=texts)["texts"]
    for task, answer in zip(texts, answers, strict=True):
        ids = [writer.end_id, *writer.tokenizer.encode(task["text"])]
        if len(ids) > writer.model.config.max_len:
            ids = ids[-writer.model.config.max_len // 2 :]
        assert answer["ids"] == ids
        with torch.no_grad():
            logits = writer.model.eval()(torch.tensor([ids]))[:, -1]
        np.testing.assert_allclose(numbers(answer["scores"]), logits[0].numpy(), atol=1e-4)
        rule = task["rule"]
        sampling = Sampling(
            temperature=rule.get("temperature"), top_k=rule.get("topK"), top_p=rule.get("p")
        )
        left = sampling(logits, torch.tensor([ids]))[0]
        assert answer["kept"] == left.isfinite().nonzero()[:, 0].tolist()
