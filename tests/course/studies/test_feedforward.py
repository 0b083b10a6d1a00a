"""What stands in the feed-forward network's place."""

import pytest
import torch

from tinytf_course.studies.feedforward import VARIANTS, untrained


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "ReLU"])
def test_a_variant_differs_in_its_feed_forward_networks_alone(variant):
    (first, ours), (second, relu) = untrained(variant, 3), untrained("ReLU", 3)
    layers = 5 if "5 layers" in variant else 2
    assert len(ours.model.encoder.layers) == len(ours.model.decoder.layers) == layers
    if layers == 2:
        theirs = relu.model.state_dict()
        shared = {n: w for n, w in ours.model.state_dict().items() if "feed_forward" not in n}
        assert shared
        assert all(torch.equal(w, theirs[n]) for n, w in shared.items())
    ids, twin = (trainer.batches(0) for trainer in (first, second))
    assert torch.equal(ids.src, twin.src)
