"""18.1 what reaches the top (★★☆, 6 minutes)

Each layer of a stack has a mask of its own. Write `my_reach(masks)`, which works out from the masks
alone what `influence` has measured: the boolean `(T, T)` tensor that is True in row t and column
s if the output of the stack at position t can depend on its input at position s.

<details><summary>The rule in detail</summary>

`masks` is a list of boolean tensors `(T, T)`, that of the lowest layer first; True in row t and
column s means that position t may attend to position s. Every sublayer has a residual connection.
The result is on the device of the masks.

</details>

Hint: Begin with the input, where each position has its own token. What does a position have after
one layer?

Hint: Position t now has what it had, and what those had to which it may attend. In a product of
matrices, `mask @ reach`, such paths are counted.
"""

import torch

from tinytf.blocks import Encoder, EncoderLayer
from tinytf.interpret.invariants import influence
from tinytf_course.expect import agrees, numbers, same, travels


def my_reach(masks):
    """What the output at each position of a stack can depend on: boolean (T, T).

    masks holds a boolean (T, T) for each layer, the lowest first; True = row t may attend to
    column s.
    """
    reach = torch.eye(len(masks[0]), dtype=torch.bool, device=masks[0].device)
    for mask in masks:
        collected = mask.float() @ reach.float() > 0  # (T, T)
        reach = reach | collected  # the residual connection keeps what was there
    return reach


def _mask(*pairs, T=3):
    """The mask that allows these pairs (query, key)."""
    mask = torch.zeros(T, T, dtype=torch.bool)
    for query, key in pairs:
        mask[query, key] = True
    return mask


CAUSAL, OPEN = torch.ones(4, 4).tril().bool(), torch.ones(4, 4).bool()
WINDOW = torch.ones(6, 6).tril().triu(-1).bool()


def test_one_layer(answer):
    """after one layer a position has what it attends to, and its own token"""
    where = "for one layer in which only position 2 attends, and to position 0 alone"
    wanted = torch.tensor([[1, 0, 0], [0, 1, 0], [1, 0, 1]]).bool()
    same(answer([_mask((2, 0))]), wanted, where, note="A residual connection keeps the own token.")


def test_two_layers(answer):
    """what a position has collected is passed on, from the lower layer to the upper"""
    below, above = _mask((0, 0), (1, 0), (2, 2)), _mask((0, 0), (1, 1), (2, 1))
    where = "for two layers: in the lower, 1 attends to 0; in the upper, 2 attends to 1"
    wanted = torch.ones(3, 3).tril().bool()
    same(answer([below, above]), wanted, where, note="By way of 1, the output at 2 has token 0.")
    where = "for the same two layers, exchanged"
    wanted = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 1, 1]]).bool()
    same(answer([above, below]), wanted, where, note="2 attends to 1 before 1 has token 0.")


def test_leak(answer):
    """one layer without a mask lets the future in everywhere, and causal layers do not"""
    for layers in (1, 3):
        same(answer([CAUSAL] * layers), CAUSAL, f"for {layers} causal layers of 4 positions")
    for place in range(3):
        masks = [OPEN if i == place else CAUSAL for i in range(3)]
        where = f"for 3 layers of 4 positions, all causal but layer {place + 1}, which is open"
        same(answer(masks), OPEN, where)


def test_windows(answer):
    """with a window of two, each layer reaches one position further back"""
    for layers in (1, 2, 4):
        wanted = torch.ones(6, 6).tril().triu(-layers).bool()
        where = f"for {layers} layers in which a position attends to itself and to the one before"
        same(answer([WINDOW] * layers), wanted, where)


def _by_paths(masks):
    """From each output down, layer by layer: where may it come from?"""
    T = len(masks[0])
    reach = torch.zeros(T, T, dtype=torch.bool)
    for t in range(T):
        sources = {t}
        for mask in reversed(masks):
            sources |= {s for query in sources for s in range(T) if mask[query, s]}
        reach[t, list(sources)] = True
    return reach


def test_any_masks(answer):
    """any masks, few layers or many, on another device"""
    for T, layers in ((1, 1), (2, 3), (5, 2), (7, 3), (6, 40)):
        masks = [numbers(T, T, seed=10 * T + i) > 0.8 for i in range(layers)]
        agrees(answer, _by_paths, masks, where=f"for {layers} random masks of {T} positions")
    note = "There are too many paths to be counted in whole numbers of 64 bits."
    for T in (7, 8):
        wide = torch.ones(T, T).bool()
        where = f"for 40 layers of {T} positions, all open"
        same(answer([wide] * 40), wide, where, note=note)
    travels(answer, [CAUSAL, OPEN], where="for two masks")


def test_real_stack(answer):
    """a real stack depends on just these tokens: `influence` measures it"""
    masks = [torch.eye(5).bool() | (numbers(5, 5, seed=seed) > 1) for seed in (1, 2, 3)]
    x = numbers(1, 5, 8, seed=4)
    stack = Encoder([EncoderLayer(8, 2, 8, 0.0) for _ in masks], torch.nn.Identity()).eval()

    def masked(x):
        for layer, mask in zip(stack.layers, masks, strict=True):
            x = layer(x, mask[None, None])
        return x

    same(answer(masks), influence(masked, x) > 0, "for a stack of three layers with random masks")


MISTAKES = r"""
no residual connection
    reach | collected => collected
    says: A residual connection keeps the own token
    What a position has goes past its attention: it keeps its own token even where it may not attend
    to itself.
only what is attended to directly
    mask.float() @ reach.float() > 0 => mask
    says: By way of 1, the output at 2 has token 0
    A position attends to vectors, and these hold what was collected in the layers below.
the top layer alone
    in masks: => in masks[-1:]:
    says: By way of 1, the output at 2 has token 0
    The top layer's mask hides positions, not what they have collected below.
hidden once, hidden for ever
    … =>
        return torch.stack(masks).all(dim=0) | torch.eye(len(masks[0])).bool()
    says: which is open
    One layer that lets a token in is enough: what it has let in goes up with the position.
the layers from the top down
    in masks: => in masks[::-1]:
    says: By way of 1, the output at 2 has token 0
    The order counts: a position passes on what it has when it is attended to.
rows and columns exchanged
    mask.float() @ => mask.float().T @
    says: for one layer in which only position 2 attends
    Row t of a mask says to which positions t may attend: `mask @ reach`, with no transpose.
paths, not True and False
    collected = mask.float() @ reach.float() > 0 => collected = mask.float() @ reach.float()
    reach | collected => reach + collected
    says: the dtype is float32, expected bool
    How many paths there are is not what was wanted, and it grows beyond all bounds with the depth.
more paths than a whole number holds
    collected = mask.float() @ reach.float() > 0 => collected = mask.long() @ reach.long()
    reach | collected => reach + collected
    return reach => return reach > 0
    says: whole numbers of 64 bits
    In 40 layers the number of paths overflows and comes out negative or 0: ask `> 0` after each
    layer.
made on the CPU
    , device=masks[0].device =>
    says: on another device than the CPU it fails
    The masks may be on a GPU: give the tensor that you make their device.
"""

HARMLESS = r"""
… => reach |= collected
    the tensor is the answer's own
… => …masks[-1]…
    all masks have one size and one device
"""
