"""Several processes run one function, meet, and never outlive the call."""

import time

import pytest

from tinytf_course.lessons.processes import run_processes


def meet():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    mine = torch.tensor([1.0 + dist.get_rank()])
    dist.all_reduce(mine)
    told = dist.get_rank(), dist.get_world_size(), mine
    dist.destroy_process_group()
    return told


def fail():
    import os

    if os.environ["RANK"] == "1":
        raise ValueError("process one is unwell")
    import time

    time.sleep(100)


def sleep():
    import time

    time.sleep(100)


def test_two_processes_meet():
    told = run_processes(meet, 2)
    assert [(rank, size) for rank, size, _ in told] == [(0, 2), (1, 2)]
    assert [total.item() for *_, total in told] == [3.0, 3.0]


def test_one_that_fails_ends_all_and_says_why():
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"(?s)process 1 of 2 failed:.*process one is unwell"):
        run_processes(fail, 2)
    assert time.monotonic() - begin < 60


def test_nobody_waits_for_ever():
    with pytest.raises(TimeoutError, match=r"2 processes were not done after 0\.5 s"):
        run_processes(sleep, 2, timeout=0.5)
    with pytest.raises(ValueError, match="processes must be at least 1, got 0"):
        run_processes(sleep, 0)
