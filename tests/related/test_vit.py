"""Patches against torch's unfold and convolution, the classifier against Hugging Face's ViT."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import assert_equal_with_gradients, bounded, randomise
from torch import nn

from tinytf.blocks import Encoder
from tinytf.inspect import record
from tinytf.related.vit import ImageClassifier, ImageConfig, PatchEmbedding, split_patches


def small(device="cpu", dtype=torch.float64, **changes):
    sizes = {"image_size": 6, "patch_size": 2, "channels": 3, "num_classes": 5, "d_model": 12,
             "num_heads": 3, "d_ff": 20}  # fmt: skip
    return randomise(ImageClassifier(ImageConfig(**sizes | changes))).to(device, dtype)


def pictures(rows=2, device="cpu", channels=3, size=6):
    return torch.randn(rows, channels, size, size, dtype=torch.float64, device=device)


# ---- patches


@bounded
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)
)
def test_patches_are_those_of_unfold(b, channels, down, across, size):
    images = torch.randn(b, channels, down * size, across * size)
    expected = F.unfold(images, size, stride=size).transpose(1, 2)
    assert torch.equal(split_patches(images, size), expected)


def test_embedding_is_a_convolution_with_a_stride(exact):
    ours = PatchEmbedding(10, 2, channels=3).to(exact, torch.float64)
    theirs = nn.Conv2d(3, 10, 2, stride=2).to(exact, torch.float64)
    with torch.no_grad():
        theirs.weight.copy_(ours.project.weight.view(10, 3, 2, 2))
    twins = [([ours.project.bias], theirs.bias)]
    run = lambda x: theirs(x).flatten(2).transpose(1, 2)  # noqa: E731
    assert_equal_with_gradients(ours, run, [pictures(2, exact)], twins)
    torch.testing.assert_close(ours.project.weight.grad.view(10, 3, 2, 2), theirs.weight.grad)


@pytest.mark.parametrize(
    ("shape", "size", "words"),
    [
        ((2, 1, 8, 8), 3, "patches of 3 × 3 do not tile images of 8 × 8"),
        ((2, 1, 8, 9), 2, "patches of 2 × 2 do not tile images of 8 × 9"),
        ((2, 1, 8, 8), 0, "patches of 0 × 0 do not tile"),
        ((2, 8, 8), 2, r"must be \(B, channels, height, width\), got \(2, 8, 8\)"),
    ],
)
def test_images_that_cannot_be_cut_are_refused(shape, size, words):
    with pytest.raises(ValueError, match=words):
        split_patches(torch.zeros(shape), size)


# ---- the classifier


def hugging_face(ours):
    """Their model of the same sizes, with our weights, and the twins."""
    from transformers import ViTConfig, ViTForImageClassification

    c = ours.config
    config = ViTConfig(
        hidden_size=c.d_model, num_hidden_layers=c.num_layers, num_attention_heads=c.num_heads,
        intermediate_size=c.d_ff, image_size=c.image_size, patch_size=c.patch_size,
        num_channels=c.channels, num_labels=c.num_classes, hidden_act="gelu", layer_norm_eps=1e-5,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="sdpa",
    )  # fmt: skip
    theirs = ViTForImageClassification(config).to(ours.class_token.device, torch.float64)
    pairs = {"vit.embeddings.patch_embeddings.projection": ours.embedding.project,
             "vit.layernorm": ours.encoder.final_norm, "classifier": ours.output}  # fmt: skip
    for i, layer in enumerate(ours.encoder.layers):
        block, attention = f"vit.layers.{i}", layer.self_attention
        pairs |= {f"{block}.attention.{n}_proj": getattr(attention, f"w_{n}") for n in "qkvo"}
        pairs |= {f"{block}.layernorm_before": layer.residual_1.norm,
                  f"{block}.layernorm_after": layer.residual_2.norm,
                  f"{block}.mlp.fc1": layer.feed_forward.w_1,
                  f"{block}.mlp.fc2": layer.feed_forward.w_2}  # fmt: skip
    twins = [(ours.class_token, "vit.embeddings.cls_token"),
             (ours.positions.table, "vit.embeddings.position_embeddings")]  # fmt: skip
    for name, module in pairs.items():
        twins += [(module.weight, f"{name}.weight"), (module.bias, f"{name}.bias")]
    assert {name for _, name in twins} == {name for name, _ in theirs.named_parameters()}
    twins = [(mine, theirs.get_parameter(name)) for mine, name in twins]
    with torch.no_grad():
        for mine, yours in twins:
            yours.copy_(mine.view_as(yours))
    return theirs, twins


def test_equals_hugging_faces_vit_with_gradients(exact):
    ours = small(exact)
    theirs, twins = hugging_face(ours)
    images = pictures(4, exact)
    states = theirs.vit(images).last_hidden_state
    torch.testing.assert_close(ours.encode(images), states, atol=1e-10, rtol=1e-10)
    mine, yours = ours(images), theirs(images).logits
    torch.testing.assert_close(mine, yours, atol=1e-10, rtol=1e-10)
    labels = torch.tensor([0, 4, 2, 1], device=exact)
    F.cross_entropy(mine, labels).backward()
    F.cross_entropy(yours, labels).backward()
    for a, b in twins:
        torch.testing.assert_close(a.grad, b.grad.view_as(a), atol=1e-10, rtol=1e-10)
        assert a.grad.abs().sum() > 0


def test_the_encoder_is_that_of_chapter_08():
    assert type(small().encoder) is Encoder


def test_patches_and_their_positions_may_be_shuffled_together(exact):
    model, images = small(exact), pictures(2, exact)
    order = torch.randperm(9, device=exact)
    before = model(images)
    patches = split_patches(images, 2)[:, order]
    moved = F.fold(patches.transpose(1, 2), 6, 2, stride=2)
    assert not torch.allclose(model(moved), before)
    with torch.no_grad():
        model.positions.table[1:] = model.positions.table[1:][order].clone()
    torch.testing.assert_close(model(moved), before, atol=1e-10, rtol=1e-10)


def test_hidden_patches_have_no_say(exact):
    model, images = small(exact).eval(), pictures(2, exact).requires_grad_()
    visible = torch.rand(2, 9, device=exact) < 0.5
    with record(model) as seen:
        model(images, visible).sum().backward()
    for weights in seen.values():
        assert (weights[:, :, :, 1:][~visible[:, None, None].expand(2, 3, 10, 9)] == 0).all()
    reached = split_patches(images.grad, 2).abs().sum(dim=-1) > 0
    assert torch.equal(reached, visible)
    everything = torch.ones_like(visible)
    torch.testing.assert_close(model(images, everything), model(images))


def test_starts_with_no_opinion_and_learns():
    torch.manual_seed(0)
    model = ImageClassifier(ImageConfig())
    images, labels = torch.randn(8, 1, 8, 8), torch.arange(8)
    assert (model(images) == 0).all()
    assert model.positions.table.std().item() == pytest.approx(0.2, rel=0.15)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(40):
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
    assert (model(images).argmax(-1) == labels).all()


def test_bad_input_is_named():
    model = small()
    with pytest.raises(ValueError, match=r"must be 6 × 6 pixels, got shape \(2, 3, 8, 8\)"):
        model(pictures(size=8))
    with pytest.raises(ValueError, match="images have 1 channels, expected 3"):
        model(pictures(channels=1))
    with pytest.raises(ValueError, match=r"boolean \(2, 9\), got torch.bool \(2, 10\)"):
        model(pictures(), torch.ones(2, 10, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"visible must be boolean .* got torch.float32 \(2, 9\)"):
        model(pictures(), torch.ones(2, 9))
    for change, words in [
        ({"patch_size": 3, "image_size": 8}, "image_size=8 is not divisible by patch_size=3"),
        ({"d_model": 10, "num_heads": 3}, "d_model=10 is not divisible by num_heads=3"),
        ({"num_classes": 0}, "num_classes must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
    ]:
        with pytest.raises(ValueError, match=words):
            ImageConfig(**change)
    assert ImageConfig(d_model=24).d_ff == 96
    assert ImageConfig(image_size=224, patch_size=16).num_patches == 196
