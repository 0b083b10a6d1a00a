"""What a chapter defines computes on the device that its input is on."""

import ast

import torch
from test_notebooks_form import NOTEBOOKS

from tinytf.related.efficient_attention import feature_map


def test_reading_on_keeps_its_state_on_the_device_of_the_keys():
    chapter = next(notebook for notebook in NOTEBOOKS if notebook.chapter == "27")
    names = {"torch": torch, "feature_map": feature_map}
    exec(ast.unparse(chapter.definition("read_on")), names)
    x = torch.randn(5, 3, device="meta")
    assert names["read_on"](x, x, x).device.type == "meta"
