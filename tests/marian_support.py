"""What the tests of Marian share: Hugging Face's with random weights, and a folder as published."""

import json

import torch

from tinytf.pretrained import marian
from tinytf.related.marian import Marian
from tinytf_course.phrasebook import Phrasebook

SIZES = {"vocab_size": 53, "d_model": 24, "encoder_layers": 3, "decoder_layers": 3,
         "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 40,
         "decoder_ffn_dim": 40, "max_position_embeddings": 32, "pad_token_id": 52,
         "decoder_start_token_id": 52, "eos_token_id": 0, "forced_eos_token_id": None}  # fmt: skip


def their_model(dtype=torch.float32, std=0.2, **changes):
    """A small Marian of Hugging Face with weights that hide nothing: no gain is 1, no bias 0."""
    from transformers import MarianConfig, MarianMTModel

    said = SIZES | {"activation_function": "swish", "scale_embedding": True} | changes
    model = MarianMTModel(MarianConfig(**said)).to(dtype).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "embed_positions" not in name:
                p.normal_(std=std)
            if name.endswith("layer_norm.weight"):
                p.add_(1)  # so that what is said depends on what was read
        model.final_logits_bias.normal_()
    return model


def our_twin(theirs):
    """Ours with the same weights, in the same number format."""
    model = Marian(marian.from_config(theirs.config.to_dict())).to(theirs.dtype).eval()
    model.load_state_dict(marian.from_state(theirs.state_dict(), model), strict=False)
    return model


def sentences(count=600):
    """English sentences of the phrasebook, and the Chinese ones without spaces."""
    pairs = [pair for pair, _ in zip(Phrasebook().pairs("train", seed=1), range(count))]
    return [p.english for p in pairs], ["".join(p.target) for p in pairs]


def write_pieces(folder):
    """Train two SentencePiece models and number their pieces together, as the public models do."""
    import sentencepiece

    folder.mkdir(parents=True, exist_ok=True)
    ids = {"</s>": 0, "<unk>": 1}
    for name, texts in zip(("source", "target"), sentences()):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_prefix=str(folder / name), vocab_size=400,
            hard_vocab_limit=False, character_coverage=1.0, minloglevel=2, num_threads=1,
        )  # fmt: skip
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
        lines = (folder / f"{name}.vocab").read_text(encoding="utf-8").splitlines()
        for piece in (line.split("\t")[0] for line in lines):
            if piece not in ("<unk>", "<s>", "</s>", "▁rare"):
                ids.setdefault(piece, len(ids))
    for special in (">>cmn_Hans<<", "<pad>"):
        ids[special] = len(ids)
    (folder / "vocab.json").write_text(json.dumps(ids))
    return ids


def write_translator(folder, **changes):
    """A whole folder: a random model, its config and both tokenizers. Returns their model."""
    ids = write_pieces(folder)
    last = {"vocab_size": len(ids), "pad_token_id": len(ids) - 1}
    theirs = their_model(**last, decoder_start_token_id=len(ids) - 1, **changes)
    theirs.save_pretrained(folder)
    return theirs
