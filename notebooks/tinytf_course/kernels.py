"""Kernels of the tests, each forked from one process that has torch and matplotlib already.

A chapter takes three seconds to load what all chapters load. `multiprocessing`'s fork server does
it once, and stays as it is: it computes nothing and starts no thread, so that a kernel finds what a
new one would have loaded, and nothing of another chapter's. For Linux, where that is safe.
"""

import contextlib
import multiprocessing
import os
import sys
from importlib.metadata import EntryPoint
from multiprocessing.context import ForkServerProcess

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

LOADED = [
    "ipykernel.kernelapp",
    "matplotlib.pyplot",
    "torch._dynamo",  # which torch loads with a process's first optimizer
    "matplotlib.backends.backend_agg",
    "ipywidgets",
    "tinytf_course",
    "tinytf.viz",
    "tinytf_course.check",  # by a chapter's first `check`
]


def fork_kernels():
    """Have every kernel that this process starts from now on forked."""
    factory = KernelProvisionerFactory.instance()
    here = f"{__name__}:{ForkedProvisioner.__name__}"
    entry = EntryPoint("tinytf-forked", here, factory.GROUP_NAME)
    factory.provisioners[entry.name] = entry
    factory.default_provisioner_name = entry.name


class ForkedKernel(ForkServerProcess):
    """A kernel's process, with what jupyter_client asks of a `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def poll(self):
        """The exit code, None while it runs."""
        return self.exitcode

    def wait(self):
        """Wait for its end; the exit code."""
        self.join()
        return self.exitcode

    def send_signal(self, signum):
        """Send a signal, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signum)


class ForkedProvisioner(LocalProvisioner):
    """Starts a kernel by forking; all else is as for kernels on this machine."""

    async def launch_kernel(self, cmd, *, env, cwd=None, **others):
        """Start it in a process group of its own, its words unheard; the connection's facts.

        A kernel of another language, or of another Python, is started as ever.
        """
        if cmd[0] != sys.executable or "ipykernel_launcher" not in cmd:
            return await super().launch_kernel(cmd, env=env, cwd=cwd, **others)
        multiprocessing.set_forkserver_preload(LOADED)
        arguments = cmd[cmd.index("-f") :]
        self.process = ForkedKernel(target=_serve, args=(arguments, env, cwd or os.getcwd()))
        self.process.start()
        self.pid = self.pgid = self.process.pid
        self.cwd = cwd
        return self.connection_info


def _serve(arguments, environment, folder):
    import matplotlib
    from ipykernel.kernelapp import launch_new_instance

    os.setsid()
    with open(os.devnull, "r+b") as nothing:
        for descriptor in range(3):
            os.dup2(nothing.fileno(), descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment, JPY_PARENT_PID=str(os.getppid()))
    # matplotlib would have taken it from the variable that ipykernel sets
    matplotlib.rcParams["backend"] = "module://matplotlib_inline.backend_inline"
    launch_new_instance(arguments)
