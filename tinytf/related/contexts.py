"""What a recurrent decoder is given of the source: one vector, or a new average at every step.

Both prepare a sentence once (`prepare`) and return a context before every word (`forward`), so that
a decoder can be given either.
"""

import torch
from torch import Tensor, nn

__all__ = ["AdditiveAttention", "FixedContext", "additive_weights"]


def additive_weights(query: Tensor, keys: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Compute a decoder step's weight of each source word: softmax_j(vᵀ tanh(W s + U h_j)).

    query is W s, (B, A); keys are U h, (B, S, A); v is (A,); mask is boolean (B, S), True = may
    attend. Returns (B, S); each row sums to 1, a row with nothing to attend to is all zeros.
    Source: Bahdanau et al. 2015, section 3.1 and appendix A.1.2.
    """
    scores = torch.tanh(query[:, None] + keys) @ v  # (B, S, A) -> (B, S)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1).masked_fill(~mask, 0.0)


class AdditiveAttention(nn.Module):
    """A new context for every step: an average of the source states by `additive_weights`.

    `w` projects the decoder's state (H,) to the query, `u` a source state (2H,) to its key, neither
    with a bias; `v` (H,) is initialised uniformly between -H^-0.5 and H^-0.5. `weights` is the
    function that does the work, kept as an attribute so that it can be wrapped
    (`record_alignment`). Source: Bahdanau et al. 2015, section 3.1.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.w = nn.Linear(hidden, hidden, bias=False)
        self.u = nn.Linear(2 * hidden, hidden, bias=False)
        self.v = nn.Parameter(torch.empty(hidden).uniform_(-(hidden**-0.5), hidden**-0.5))
        self.weights = additive_weights

    def prepare(self, states: Tensor, mask: Tensor) -> Tensor:
        """Compute U h once for all steps: (B, S, 2H) -> (B, S, H)."""
        return self.u(states)

    def forward(self, state: Tensor, keys: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """Average the source states for a decoder in `state` (B, H): the context (B, 2H).

        keys is what `prepare` returned, states (B, S, 2H), mask (B, S), True = may attend.
        """
        weights = self.weights(self.w(state), keys, self.v, mask)
        return (weights[:, None] @ states).squeeze(1)  # (B, S, 2H) -> (B, 2H)


class FixedContext(nn.Module):
    """One context for every step: the last state of each reading direction.

    `hidden` is H, the width of one direction; nothing is learned. Source: Cho et al. 2014, section
    2.2, and Sutskever et al. 2014.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden

    def prepare(self, states: Tensor, mask: Tensor) -> Tensor:
        """Join the states at which the forward and the backward reader finish: (B, 2H).

        states (B, S, 2H) holds the forward reader's H numbers first; mask (B, S), True = a word.
        """
        last = mask.sum(dim=1) - 1
        ahead = states[torch.arange(len(last), device=last.device), last]
        return torch.cat([ahead[:, : self.hidden], states[:, 0, self.hidden :]], dim=-1)

    def forward(self, state: Tensor, vector: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """Return the vector (B, 2H) of `prepare`, whatever the decoder's state (B, H) is."""
        return vector
