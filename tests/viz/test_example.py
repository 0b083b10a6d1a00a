"""Attention as it was recorded becomes an example."""

import pytest
from viz_support import SOURCE, TARGET, weights

from tinytf.viz import example as example_module


def test_attention_as_recorded_of_a_batch_of_one():
    """`record` keeps the batch's axis; more than one sentence is refused."""
    recorded = {f"decoder.layers.{i}.cross_attention": weights(1, 4, 6, 7) for i in range(2)}
    made = example_module.checked({"source": SOURCE, "target": TARGET, "attention": recorded})
    assert made["attention"]["cross"].shape == (2, 4, 6, 7)
    recorded = {"decoder.layers.0.cross_attention": weights(2, 4, 6, 7)}
    with pytest.raises(ValueError, match=r"needs 3 dimensions, got shape \(2, 4, 6, 7\)"):
        example_module.checked({"source": SOURCE, "target": TARGET, "attention": recorded})
