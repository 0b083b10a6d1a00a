"""Whatever an answer does, the notebook and the next check go on as before."""

import math
import os
import subprocess
import sys
import threading
import time

import cloudpickle
import pytest
import torch

from tinytf import masks
from tinytf_course import worker
from tinytf_course.answering import unpack
from tinytf_course.carried import Absent, pack
from tinytf_course.check import grade
from tinytf_course.grading import exercises
from tinytf_course.trial import Outlet
from tinytf_course.worker import borrowed, start

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as what a notebook defines
SPLIT = exercises()["06.1"]


@pytest.fixture(
    params=[True, False][not worker.FORKS :], ids=["forks", "spawns"][not worker.FORKS :]
)
def process(request, monkeypatch):
    """Each way to have a process: by a fork of one that has loaded torch, or by a new one."""
    if not request.param:
        monkeypatch.setattr(worker, "FORKS", False)
        monkeypatch.setattr(worker, "_held", {})
    yield request.param
    for each in [] if request.param else worker._held.values():
        each.kill()


def split(x, num_heads):
    if x.size(-1) % num_heads:
        raise ValueError
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def hostile(act):
    """A right answer that does something else as well."""

    def answer(x, num_heads):
        result = split(x, num_heads)
        act()
        return result

    return answer


def no_more_files():
    kept = []
    while True:
        kept.append(os.dup(2))


def threads():
    for _ in range(5):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def lies():
    class Liar(torch.Tensor):
        pass

    Liar.__eq__ = lambda *_: True


PASSES = {  # what changes nothing that tests depend on, and is gone with the process
    "threads": threads,
    "signals": lambda: __import__("signal").signal(15, lambda *_: None),
    "backends": lambda: torch.backends.mkldnn.set_flags(False),
    "hooks": lambda: torch.nn.modules.module.register_module_forward_hook(lambda *_: 3),
    "json": lambda: setattr(__import__("json"), "dumps", None),
    "numpy errors": lambda: __import__("numpy").seterr(all="raise"),
    "no garbage": lambda: __import__("gc").disable(),
    "path": sys.path.clear,
    "standard output": lambda: sys.stdout.close() if hasattr(sys.stdout, "close") else 0,
    "descriptors": lambda: os.closerange(0, 3),
    "the package": lambda: setattr(masks, "causal_mask", None),
    "copies a tensor": lambda: __import__("copy").copy(torch.ones(2)),
    "pickles a module": lambda: __import__("pickle").dumps(torch.nn.Linear(2, 2)),
    "saves in memory": lambda: torch.save(torch.ones(2), __import__("io").BytesIO()),
    "trace": lambda: sys.settrace(lambda *_: None),
    "draws": lambda: torch.manual_seed(3),
}
FAILS = {  # and what is told of it
    "dtype": (lambda: torch.set_default_dtype(torch.float64), "default dtype"),
    "device": (lambda: torch.set_default_device("meta"), "default device"),
    "grad mode": (lambda: torch.set_grad_enabled(False), "records gradients"),
    "cwd": (lambda: os.chdir("/"), "working directory"),
    "function": (lambda: setattr(torch.nn.functional, "relu", None), "torch.nn.functional.relu"),
    "method": (lambda: setattr(torch.Tensor, "softmax", print), "replaces torch.Tensor.softmax"),
    "class": (
        lambda: setattr(torch.nn.Linear, "forward", None),
        "replaces torch.nn.Linear.forward",
    ),
    "exit": (sys.exit, "SystemExit: it ends the program"),
    "interrupts": (lambda: __import__("signal").raise_signal(2), "KeyboardInterrupt"),
    "ends": (lambda: os._exit(0), "it ends the process"),
    "all descriptors": (lambda: os.closerange(0, 100), "it changes or ends what checks it"),
    "aborts": (os.abort, "it ends the process"),
    "crashes": (lambda: __import__("ctypes").string_at(0), "it ends the process"),
    "files": (no_more_files, "Too many open files"),
    "memory": (lambda: torch.empty(2**30), "it asks for more memory"),
    "much memory": (lambda: [0] * 10**15, "it asks for more memory"),
    "deep": (lambda: (f := lambda: f())(), "it calls itself without an end"),
    "forks": (lambda: os.fork(), "os.fork is not allowed"),
    "writes": (lambda: open("/tmp/x-tinytf", "w").close(), "may not write to '/tmp/x-tinytf'"),
    "saves": (lambda: torch.save(1, "/tmp/x-tinytf"), "may not write to '/tmp/x-tinytf'"),
    "a base": (lambda: __import__("sqlite3").connect("/tmp/x-tinytf"), "may not write to"),
    "reads": (lambda: __import__("tinytf_course.exercises.ch06.split_heads"), "may not read"),
}
# A new process for each costs seconds: there, some of each kind.
FEW = ["threads", "descriptors", "dtype", "ends", "saves", "copies a tensor"]


def kept():
    x = torch.tensor([1.0, 2.0])
    return (
        torch.get_rng_state().tolist(), torch.get_default_dtype(), torch.is_grad_enabled(),
        x.softmax(0).tolist(), masks.causal_mask, sys.stdout, os.getcwd(), list(sys.path),
        dict(os.environ), math.sqrt,
    )  # fmt: skip


TRIED = [
    (name, forks)
    for forks in (worker.FORKS, False)
    for name in ([*PASSES, *FAILS] if forks else FEW)
]


@pytest.mark.parametrize(("name", "process"), TRIED, indirect=["process"], ids=map(str, TRIED))
def test_nothing_that_an_answer_does_survives(name, process):
    before = kept()
    result = grade(SPLIT, hostile(PASSES[name] if name in PASSES else FAILS[name][0]))
    assert kept() == before
    if name in PASSES:
        assert result.passed, result.text
    else:
        assert result.failed
        assert any(FAILS[name][1] in found for _, found in result.problems), result.text
        assert not os.path.exists("/tmp/x-tinytf")
    assert name not in FEW or grade(SPLIT, split).passed


def test_an_endless_loop_ends(process):
    def deaf(x, num_heads):
        while True:
            try:
                sum(range(10))
            except BaseException:
                continue

    start()
    with borrowed():
        pass
    result = grade(SPLIT, deaf, seconds=1.0)
    assert "does a loop never end?" in result.text
    assert len(result.problems) == 1  # the other tests are not tried
    assert result.endless
    assert grade(SPLIT, split).passed


def test_what_held_before_a_process_ended_is_told():
    calls = []

    def at_last(x, num_heads):
        calls.append(1)
        return split(x, num_heads) if len(calls) < 3 else os._exit(3)

    result = grade(SPLIT, at_last)
    assert result.held
    assert "exit code 3" in result.problems[0][1]
    assert calls == []


def test_what_a_notebook_defines_travels():
    class Base:
        heads = 2

    class Split(Base):
        def __call__(self, x, num_heads):
            assert self.heads == 2
            return split(x, num_heads)

    seen = []

    def closure(x, num_heads):
        seen.append(x)
        return Split()(x, num_heads)

    assert grade(SPLIT, closure).passed
    assert seen == []


def test_a_name_that_is_compared_by_identity_stays_the_same():
    mask = masks.CAUSAL
    assert unpack(pack(lambda: mask))[0]() is masks.CAUSAL


def test_what_can_not_travel_is_said():
    lock = threading.Lock()
    result = grade(SPLIT, lambda x, num_heads: lock)
    assert result.not_yet
    assert "it can't be sent to the process that checks it: cannot pickle" in result.text


def test_code_keeps_its_file():
    code = unpack(pack(split))[0].__code__
    assert code.co_filename == split.__code__.co_filename


def test_what_belongs_to_the_notebook_is_named():
    with pytest.raises(RuntimeError, match="`shell` belongs to the notebook"):
        Absent().shell()


def test_no_process_is_no_error(monkeypatch):
    monkeypatch.setattr(worker, "_held", {})
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    start()
    result = grade(SPLIT, split)
    assert result.not_yet
    assert "can't be started" in result.text


def test_the_process_ends_with_the_one_that_started_it():
    code = "from tinytf_course import worker; import os; worker.start(); "
    code += "print(worker._held[os.getpid()].process.pid, flush=True); os._exit(0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    pid, end = int(done.stdout), time.monotonic() + 60
    while time.monotonic() < end and os.path.exists(f"/proc/{pid}/cmdline"):
        time.sleep(0.2)
    assert not os.path.exists(f"/proc/{pid}/cmdline")


def test_a_process_whose_user_ended_before_it_was_ready_says_nothing():
    command = "from tinytf_course.answering import main; main(True)"
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", command], **streams) as process:
        process.stdout.close()
        assert process.stderr.read() == b""


def test_output_is_let_through_up_to_a_limit():
    def shown(these, **limits):
        said = []
        with Outlet(said.append, **limits):
            for line in these:
                print(line)
        return "".join(said)

    assert shown(range(1000), lines=3) == "0\n1\n2\n\n… and 997 more lines of output, left out\n"
    assert len(shown(["x" * 10**6], characters=10)) < 100
    assert shown(["a line"]) == "a line\n"
    assert shown(["silent"], lines=0) == ""


CELLS = {
    "from tinytf_course import setup, check\nfrom tinytf_course.check import find, grade": "",
    "setup()": "cpu",
    "check('06.1', lambda x, num_heads: exit())": "SystemExit",
    "check('06.1', lambda x, num_heads: get_ipython().ask_exit())": "belongs to the notebook",
    "def answer(x, num_heads):\n    while True: pass": "",
    "print(grade(find('06.1'), answer, 2.0).text)": "never end",
    "check('06.1', lambda x, num_heads: nothing)": "`check('06.1', lambda x, num_heads: nothing)` ",
    "import time\ncheck('06.1', lambda x, num_heads: time.sleep(60))": None,  # interrupted
    "print('still here')": "still here",
    "check('06.1', lambda x, num_heads: print('said'))": "said",
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
                assert words in "".join(str(each["content"].get("text", "")) for each in said) or (
                    words in str(said)
                )
        assert manager.is_alive()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
