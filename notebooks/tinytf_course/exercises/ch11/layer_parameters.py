"""11.2 count a layer (★☆☆, 8 minutes)

Write `my_layer_parameters(d_model, d_ff, cross_attention=False)`, which returns the number of
parameters of one encoder layer or, with `cross_attention`, of one decoder layer.

<details><summary>The rule in detail</summary>

Every linear layer has a bias, and every sublayer has a LayerNorm with a gain and a bias per
feature. A decoder layer has a second attention, which is a sublayer of its own.

</details>

Hint: Attention has four linear layers: query, key, value and output. Their sizes don't depend on
the number of heads.
"""

import torch

from tinytf_course.expect import agrees, same


def my_layer_parameters(d_model, d_ff, cross_attention=False):
    """Return how many parameters an encoder layer or, with cross_attention, a decoder layer has.

    Every linear layer has a bias; every sublayer has a LayerNorm with gain and bias.
    """
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    attentions = 2 if cross_attention else 1
    return attentions * attention + feed_forward + (attentions + 1) * 2 * d_model


def _torch_layer(d_model, d_ff, cross_attention=False):
    """What torch's own layers hold."""
    kind = torch.nn.TransformerDecoderLayer if cross_attention else torch.nn.TransformerEncoderLayer
    with torch.device("meta"):
        return sum(p.numel() for p in kind(d_model, 1, d_ff).parameters())


def test_smallest_layer(answer):
    """of width 1, it is 16"""
    note = "Attention has 4 layers of 1 + 1, the network 2 of 1 + 1, each of the 2 norms 2."
    same(answer(1, 1), 16, "for d_model=1, d_ff=1", note=note, tolerance=0)


def test_encoder(answer):
    """an encoder layer, counted by hand"""
    note = "Attention has 4 layers of 2 x 2 + 2, the network 2 x 3 + 3 and 3 x 2 + 2, each norm 4."
    same(answer(2, 3), 49, "for d_model=2, d_ff=3", note=note, tolerance=0)


def test_decoder(answer):
    """a decoder layer has a second attention and a third norm"""
    note = "24 and 4 more than the encoder's 49: there is still one feed-forward network."
    where = "for d_model=2, d_ff=3, cross_attention=True"
    same(answer(2, 3, True), 77, where, note=note, tolerance=0)


def test_as_torch(answer):
    """torch's own layers have as many"""
    for sizes in ((3, 2), (5, 7), (8, 8), (512, 2048), (16384, 65536)):
        for cross in (False, True):
            agrees(answer, _torch_layer, *sizes, cross, tolerance=1e-12)


def test_paper(answer):
    """the paper's base model has 44 million in its layers"""
    got = 6 * answer(512, 2048) + 6 * answer(512, 2048, True)
    same(got, 44_138_496, "for 6 layers of each, d_model=512, d_ff=2048", tolerance=0)


MISTAKES = r"""
output map forgotten
    4 * => 3 *
    says: you get 43, expected 49
    After the heads are joined, `w_o` mixes them: a fourth matrix of d_model × d_model.
biases forgotten
    (d_model * d_model + d_model) => d_model * d_model
    d_ff + d_ff + d_ff * d_model + d_model => d_ff + d_ff * d_model
    says: you get 36, expected 49
    Here every linear layer has a bias. (Llama's have none; read before you count.)
norms forgotten
     + (attentions + 1) * 2 * d_model =>
    says: you get 41, expected 49
    They are few, but a checkpoint without them does not load.
one norm
    (attentions + 1) * 2 => 2
    says: you get 45, expected 49
    Each sublayer has a norm of its own: two in an encoder layer, three in a decoder's.
the attention's biases forgotten
    d_model * d_model + d_model => d_model * d_model
    says: you get 61, expected 77
    Query, key, value and output are linear layers, and here each has a bias.
norms without a bias
    * 2 * d_model => * d_model
    says: you get 71, expected 77
    A LayerNorm has a gain and a bias for each feature.
two norms, always
    (attentions + 1) * 2 => 2 * 2
    says: you get 73, expected 77
    Each sublayer has a norm, and a decoder layer has three sublayers.
a network after every attention
    attention + feed_forward => (attention + feed_forward)
    says: there is still one feed-forward network
    A decoder layer has two attentions and one feed-forward network, which comes last. In one
    tutorial there is one after every attention.
cross-attention ignored
    2 if cross_attention else 1 => 1
    says: you get 49, expected 77
    A decoder layer attends twice: to its own words and to the memory.
d_ff is 4 d_model
    d_ff + d_ff + d_ff * d_model => 4 * d_model + 4 * d_model + 4 * d_model * d_model
    says: for d_model=1, d_ff=1, you get 25, expected 16
    In the paper it is, but `d_ff` is an argument.
"""
