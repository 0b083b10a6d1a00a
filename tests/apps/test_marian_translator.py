"""Marian's tokens and its translator from a folder: pieces, texts, and where it looks."""

import json
import shutil
import unicodedata

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from marian_support import sentences, write_translator
from support import bounded

from tinytf.apps.marian_translator import MarianTranslator
from tinytf.decoding.search import greedy
from tinytf.pretrained.marian_tokenizer import join_pieces
from tinytf.support.files import CheckpointError
from tinytf.text.words import EOS, pad_batch
from tinytf_course import drawings as viz

transformers = pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("marian") / "en-zh"
    write_translator(folder)
    return folder


@pytest.fixture(scope="module")
def translator(made):
    return MarianTranslator.load(made, "cpu")


@pytest.fixture(scope="module")
def theirs(made):
    files = (made / name for name in ("source.spm", "target.spm", "vocab.json"))
    with pytest.warns(UserWarning, match="sacremoses"):
        return transformers.MarianTokenizer(*map(str, files))


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


# ---- pieces


def test_sentences_become_hugging_faces_ids(translator, theirs):
    english, chinese = sentences(200)
    order = translator.model.config.order
    unknown = pieces = 0
    for texts, tokenizer, given_as in ((english, translator.source, "text"),
                                       (chinese, translator.target, "text_target")):  # fmt: skip
        for text in texts:
            expected = theirs(**{given_as: text})["input_ids"]
            ids = [*tokenizer.encode(text), EOS]
            assert order[ids].tolist() == expected, text
            back = theirs.decode(expected, skip_special_tokens=True)
            assert tokenizer.decode(ids) == back == unicodedata.normalize("NFKC", text)
            pieces += len(ids)
            unknown += ids.count(tokenizer.encode("Ж")[-1])
    assert pieces > 2000
    assert unknown == 0


ODD = st.text("the cat sat ▁Ж猫<>🙂.,'’\t", min_size=1, max_size=30)


@given(ODD.filter(lambda text: text.strip()))
@bounded
def test_any_text_becomes_hugging_faces_ids(translator, theirs, text):
    order = translator.model.config.order
    ids = translator.source.encode(text)
    assert [*order[ids].tolist(), 0] == theirs(text)["input_ids"]


def test_the_language_in_front_is_one_piece(translator, theirs):
    text = ">>cmn_Hans<< the cat sat"
    ids = translator.source.encode(text)
    assert translator.source.tokens[ids[0]] == ">>cmn_Hans<<"
    assert [*translator.model.config.order[ids].tolist(), 0] == theirs(text)["input_ids"]
    assert translator.source.encode(">>xx<< the")[0] == translator.source.encode("Ж")[-1]


def test_ids_become_text_up_to_the_end(translator):
    ids = translator.source.encode("the cat")
    assert translator.source.decode([1, *ids, EOS, *ids, 0]) == "the cat"
    size = len(translator.source)
    with pytest.raises(ValueError, match=f"id {size} is outside the vocabulary of {size}"):
        translator.source.decode([size])
    for empty in ("", "  ", []):
        with pytest.raises(ValueError, match="the sentence is empty"):
            translator.source.encode(empty)


# ---- the translator


def test_translations_are_hugging_faces(made, translator, theirs):
    english, _ = sentences(6)
    model = transformers.MarianMTModel.from_pretrained(made).eval()
    given_ = theirs(english, return_tensors="pt", padding=True)
    with torch.no_grad():
        never = [[model.config.pad_token_id]]
        out = model.generate(
            **given_, max_new_tokens=12, num_beams=1, do_sample=False, bad_words_ids=never
        )
    src = pad_batch([[*translator.source.encode(text), EOS] for text in english])
    ids = greedy(translator.model, src, 12)
    assert torch.equal(translator.model.config.order[ids], out[:, 1:])
    said = [translator.target.decode(row) for row in ids.tolist()]
    assert said == [theirs.decode(row, skip_special_tokens=True) for row in out.tolist()]


def test_a_translation_says_its_pieces_and_where_it_looked(translator, tmp_path):
    sentence = "the cat sat on the mat"
    seen = translator.explain(sentence)
    assert seen.source[-1] == "<eos>"
    assert join_pieces(seen.source[:-1]) == "the cat sat on the mat"
    assert seen.text == join_pieces(seen.words)
    assert "▁" not in seen.text
    assert str(seen) == seen.text
    assert seen == translator(sentence) == translator.batch([sentence])[0]
    assert len(seen.attention) == 9
    for name, weights in seen.attention.items():
        rows = len(seen.source) if name.startswith("encoder") else len(seen.target)
        assert weights.shape[:2] == (4, rows)
        torch.testing.assert_close(weights.sum(-1), torch.ones(4, rows), atol=1e-5, rtol=0)
    explorer = viz.attention_explorer(seen)
    explorer.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "▁" in page
    assert len(explorer.payload["examples"][0]["source"]) == len(seen.source)
    assert explorer.payload["kinds"] == ["cross", "encoder", "decoder"]


def test_a_beam_translates_too(translator):
    beam = translator("the cat sat", beam=2)
    assert set(beam.words) <= set(translator.target.tokens[3:])


def test_a_marian_is_not_saved_to_one_file(translator, tmp_path):
    with pytest.raises(CheckpointError, match=r"kept in a folder: use .*marian\.save"):
        translator.save(tmp_path / "x.safetensors")


def test_a_sentence_longer_than_the_model_is_refused(translator):
    with pytest.raises(ValueError, match=r"sequence of length .* is longer than max_len=32"):
        translator("the cat sat on the mat " * 10)


def test_what_they_save_is_a_folder_for_us(made, translator, theirs, tmp_path):
    transformers.MarianMTModel.from_pretrained(made).save_pretrained(tmp_path / "again")
    theirs.save_pretrained(tmp_path / "again")
    again = MarianTranslator.load(tmp_path / "again", "cpu")
    assert again("the cat sat on the mat") == translator("the cat sat on the mat")


# ---- folders that do not fit


def test_a_vocabulary_of_another_size_is_named(folder):
    path = folder / "vocab.json"
    ids = json.loads(path.read_text())
    path.write_text(json.dumps(ids | {"more": len(ids)}))
    with pytest.raises(
        CheckpointError, match=rf"must number {len(ids)} pieces .* has {len(ids) + 1}"
    ):
        MarianTranslator.load(folder)
    path.write_text(json.dumps({("unk" if p == "<unk>" else p): i for p, i in ids.items()}))
    with pytest.raises(CheckpointError, match="<unk> among them"):
        MarianTranslator.load(folder)
    for bad in ("[1]", '{"a": "1"}'):
        path.write_text(bad)
        with pytest.raises(CheckpointError, match="must give every piece a whole number"):
            MarianTranslator.load(folder)


def test_broken_and_missing_files_are_named(folder):
    (folder / "target.spm").write_bytes(b"\x00" * 50)
    with pytest.raises(CheckpointError, match=r"target.spm \(50 bytes\) is truncated or no"):
        MarianTranslator.load(folder)
    (folder / "source.spm").unlink()
    with pytest.raises(CheckpointError, match=r"there is no file .*source.spm"):
        MarianTranslator.load(folder)
    (folder / "vocab.json").unlink()
    with pytest.raises(CheckpointError, match=r"there is no file .*vocab.json"):
        MarianTranslator.load(folder)
