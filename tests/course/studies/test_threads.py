"""One thread, given back."""

import pytest
import torch

from tinytf_course.studies.threads import one_thread


def test_one_thread_is_given_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert one_thread()(torch.get_num_threads)() == 1
        with pytest.raises(ZeroDivisionError):
            one_thread()(lambda: 1 / 0)()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
