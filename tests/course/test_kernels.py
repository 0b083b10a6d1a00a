"""Kernels forked from a process that has loaded torch: as if each were new."""

import sys
import time

import pytest
from jupyter_client.manager import start_new_kernel

if sys.platform != "linux":
    pytest.skip("kernels are forked on Linux", allow_module_level=True)

from tinytf_course.kernels import LOADED, ForkedKernel, fork_kernels


@pytest.fixture
def start(tmp_path):
    """Starts a kernel in a folder; all are ended."""
    fork_kernels()
    running = []

    def new():
        manager, client = start_new_kernel(cwd=str(tmp_path), startup_timeout=60)
        running.append((manager, client))
        assert isinstance(manager.provisioner.process, ForkedKernel)
        return manager, client

    yield new
    for manager, client in running:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run(client, source):
    """What a cell prints, what it shows, and the name of its error."""
    seen = {"text": "", "shown": [], "error": None}

    def hear(message):
        content = message["content"]
        if message["msg_type"] == "stream":
            seen["text"] += content["text"]
        elif message["msg_type"] == "display_data":
            seen["shown"] += content["data"]
        elif message["msg_type"] == "error":
            seen["error"] = content["ename"]

    client.execute_interactive(source, timeout=60, output_hook=hear)
    return seen


def test_what_all_chapters_load_is_there_and_nothing_else(start, tmp_path):
    _, client = start()
    loaded = f"import sys; print([name in sys.modules for name in {LOADED}])"
    assert run(client, loaded)["text"] == f"{[True] * len(LOADED)}\n"
    assert run(client, "print(sorted(set(globals()) & {'torch', 'tinytf'}))")["text"] == "[]\n"
    assert run(client, "import os; print(os.getcwd())")["text"] == f"{tmp_path}\n"


def test_what_it_is_forked_from_has_started_no_thread(start):
    _, client = start()
    count = "import os\nprint(len(os.listdir(f'/proc/{os.getppid()}/task')))"
    assert run(client, count)["text"] == "1\n"


def test_no_kernel_sees_what_another_did(start):
    _, one = start()
    left = "import os, torch\ntorch.manual_seed(5)\ntorch.left = os.environ['LEFT'] = '1'\nleft = 1"
    assert run(one, left)["error"] is None
    _, other = start()
    find = "print('left' in globals(), hasattr(torch, 'left'), 'LEFT' in os.environ)"
    assert run(other, f"import os, torch\n{find}")["text"] == "False False False\n"
    same = "print(torch.initial_seed())"
    assert run(other, same)["text"] != run(one, same)["text"] == "5\n"


def test_it_knows_what_its_starter_knows_and_leads_a_group_of_its_own(start, monkeypatch):
    start()
    monkeypatch.setenv("TOLD", "after the server had begun")
    monkeypatch.delenv("IPYTHONDIR", raising=False)
    _, client = start()
    ask = "print(os.environ.get('TOLD'), 'IPYTHONDIR' in os.environ, os.getpgrp() == os.getpid())"
    assert run(client, f"import os\n{ask}")["text"] == "after the server had begun False True\n"


def test_figures_are_shown_in_the_notebook(start):
    _, client = start()
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    assert "image/png" in run(client, draw)["shown"]


def test_it_is_interrupted_and_ended_like_any_other(start):
    manager, client = start()
    message = client.execute("import time\nprint('on')\ntime.sleep(60)")
    while client.get_iopub_msg(timeout=30)["msg_type"] != "stream":
        pass
    manager.interrupt_kernel()
    reply = client.get_shell_msg(timeout=30)
    assert reply["parent_header"]["msg_id"] == message
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    process = manager.provisioner.process
    assert process.poll() is None
    process.kill()
    end = time.monotonic() + 30
    while manager.is_alive():
        assert time.monotonic() < end
        time.sleep(0.02)
    assert process.wait() == -9
