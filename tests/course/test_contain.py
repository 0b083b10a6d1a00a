"""Whatever a function does, the caller goes on as before, and hears what it was."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy
import pytest
import torch

from tinytf_course.contain import Outlet, TooLong, contained, time_limit

HAS_ALARM = hasattr(signal, "setitimer")


def raises(error):
    def run():
        raise error

    return run


def test_a_value_comes_back():
    done = contained(lambda: 3, 5)
    assert (done.value, done.error, done.changed) == (3, None, [])


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), GeneratorExit()], ids=repr
)
def test_no_error_passes(error):
    assert contained(raises(error), 5).error is error


def test_no_way_out_of_the_process():
    kept = os._exit, os.abort
    for way in (sys.exit, lambda: os.abort(), lambda: os._exit(3), lambda: quit()):
        assert isinstance(contained(way, 5).error, SystemExit)
    assert (os._exit, os.abort) == kept


def test_deep_recursion_ends():
    def again():
        return again()

    assert isinstance(contained(again, 5).error, RecursionError)


def for_ever():
    while True:
        pass


def for_ever_and_deaf():
    while True:
        try:
            sum(range(10))
        except BaseException:
            continue


@pytest.mark.parametrize("alarm", [HAS_ALARM, False], ids=["alarm", "watchdog"])
@pytest.mark.parametrize("endless", [for_ever, for_ever_and_deaf])
def test_endless_loops_end(endless, alarm):
    start = time.monotonic()
    with pytest.raises(TooLong), time_limit(0.2, alarm=alarm):
        endless()
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("alarm", [HAS_ALARM, False], ids=["alarm", "watchdog"])
def test_a_module_is_loaded_to_its_end(alarm, tmp_path, monkeypatch):
    (tmp_path / "slow_to_load.py").write_text(
        "import time\nend = time.monotonic() + 0.5\nwhile time.monotonic() < end: pass\nready = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "slow_to_load", raising=False)
    with time_limit(0.2, alarm=alarm):
        import slow_to_load
    assert slow_to_load.ready


@pytest.mark.skipif(not HAS_ALARM, reason="no alarm signal")
def test_sleeping_ends():
    start = time.monotonic()
    assert isinstance(contained(lambda: time.sleep(60), 0.2).error, TooLong)
    assert time.monotonic() - start < 5


def test_endless_loops_end_in_another_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(contained(for_ever, 0.2).error))
    thread.start()
    thread.join(10)
    assert isinstance(found[0], TooLong)


@pytest.mark.parametrize("alarm", [HAS_ALARM, False], ids=["alarm", "watchdog"])
def test_what_ends_in_time_is_left_alone(alarm):
    before = signal.getsignal(signal.SIGALRM) if HAS_ALARM else None
    for _ in range(20):
        with time_limit(0.01, alarm=alarm):
            pass
    time.sleep(0.05)
    if HAS_ALARM:
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
        assert signal.getsignal(signal.SIGALRM) is before


def test_a_real_interrupt_passes():
    """Also one that the function swallows."""

    def interrupted():
        signal.raise_signal(signal.SIGINT)

    def swallowed():
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            return 1

    for function in (interrupted, swallowed):
        with pytest.raises(KeyboardInterrupt):
            contained(function, 5)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_huge_tensors_are_refused():
    for huge in (
        lambda: torch.ones(10**13),
        lambda: torch.ones(10**6, 10**6),
        lambda: [0] * 10**15,
    ):
        assert isinstance(contained(huge, 5).error, RuntimeError | MemoryError)
    assert torch.ones(1000, 1000).sum() == 10**6


@pytest.mark.skipif(
    sys.platform != "linux" or torch.cuda.is_available(), reason="the system sets no limit"
)
def test_memory_that_the_machine_might_have_is_refused_too():
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    assert contained(lambda: torch.empty(2**30), 5).error is not None  # 4 GiB
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def change_everything():
    torch.manual_seed(1), random.seed(1), numpy.random.seed(1)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.autograd.set_detect_anomaly(True)
    torch.set_printoptions(precision=1)
    torch.softmax = torch.sigmoid
    torch.nn.functional.relu = lambda x: x
    torch.Tensor.softmax = lambda *_: None  # inherited: the class has gained it
    torch.nn.Linear.forward = lambda self, x: x
    sys.setrecursionlimit(5000)
    warnings.simplefilter("error")
    os.environ["TINYTF_TEST"] = "1"
    os.chdir("/")
    print = open  # noqa: F841
    raise SystemExit


def everything():
    """What a notebook would notice: each setting, and what the next lines draw and compute."""
    draws = random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    x = torch.tensor([1.0, 2.0], device="cpu")
    return (
        draws, torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled(),
        torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(),
        torch.is_anomaly_enabled(), repr(x / 3), torch.softmax, torch.nn.functional.relu,
        x.softmax(0).tolist(), torch.nn.Linear.forward, sys.getrecursionlimit(),
        list(warnings.filters), dict(os.environ), os.getcwd(), sys.stdout, sys.gettrace(),
    )  # fmt: skip


def test_everything_is_put_back_and_told():
    before = everything()
    changed = contained(change_everything, 60).changed  # the deterministic mode loads a compiler
    assert everything() == before
    for words in (
        "changes torch's default dtype from float32 to float64",
        "changes torch's default device from cpu to meta",
        "changes whether torch records gradients from True to False",
        "changes torch's number of threads",
        "changes torch's deterministic mode",
        "changes the working directory",
        "replaces torch.softmax",
        "replaces torch.nn.functional.relu",
        "replaces torch.Tensor.softmax",
        "replaces torch.nn.Linear.forward",
    ):
        assert any(words in each for each in changed), words


def test_random_numbers_are_the_same_in_each_run():
    def draw():
        return random.random(), numpy.random.rand(), torch.rand(()).item()

    assert contained(draw, 5).value == contained(draw, 5).value != draw()


def test_output_is_let_through_up_to_a_limit(capsys):
    with Outlet(lines=3):
        for number in range(1000):
            print(number)
    assert capsys.readouterr().out == "0\n1\n2\n\n… and 997 more lines of output, left out\n"
    with Outlet(characters=10):
        print("x" * 10**6)
    assert len(capsys.readouterr().out) < 100
    with Outlet():
        print("a line")
    assert capsys.readouterr().out == "a line\n"
    with Outlet(lines=0):
        print("silent")
    assert capsys.readouterr().out == ""


KERNEL = """
import os, signal, threading, time
from tinytf_course.contain import contained

def later():
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=later).start()
try:
    contained(lambda: time.sleep(30), 60)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
def test_ctrl_c_interrupts_a_run():
    done = subprocess.run([sys.executable, "-c", KERNEL], capture_output=True, text=True)
    assert done.stdout == "interrupted\n", done.stderr


CELLS = {
    "from tinytf_course import check\nfrom tinytf_course.check import find, grade": "",
    "check('06.1', lambda x, num_heads: exit())": "SystemExit",
    "check('06.1', lambda x, num_heads: get_ipython().ask_exit())": "SystemExit",
    "def answer(x, num_heads):\n    while True: pass": "",
    "print(grade(find('06.1'), answer, 2.0).text)": "never end",
    "import time\ncheck('06.1', lambda x, num_heads: time.sleep(60))": None,  # interrupted
    "print('still here')": "still here",
}


def test_in_a_notebook_the_kernel_goes_on_and_can_be_interrupted():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        for source, words in CELLS.items():
            said = []
            if words is None:
                threading.Timer(1.5, manager.interrupt_kernel).start()
            reply = client.execute_interactive(source, output_hook=said.append, timeout=60)
            if words is None:
                assert reply["content"]["ename"] == "KeyboardInterrupt"
            else:
                assert reply["content"]["status"] == "ok"
                assert words in str(said)
        assert manager.is_alive()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
