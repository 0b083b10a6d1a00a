"""`python -m tinytf translate | train | pretrain | write`: models used, and models trained."""

import importlib
import os
import signal
import sys
import threading

COMMANDS = {
    "translate": "translate a sentence of the phrasebook's words",
    "train": "train a translator on the phrasebook",
    "pretrain": "pretrain a GPT on the Python manual, or on a text of yours",
    "write": "let a GPT write on",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command with the arguments after its name; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    name, rest = (arguments[0] if arguments else ""), arguments[1:]
    if name in COMMANDS:
        return _load(name)(rest)
    lines = [f"  {command:9} {words}" for command, words in COMMANDS.items()]
    usage = "\n".join(["usage: python -m tinytf COMMAND [--help]", *lines])
    if name in ("-h", "--help"):
        print(usage)
        return 0
    said = f"there is no command {name!r}" if name else "name a command"
    print(f"error: {said}\n{usage}", file=sys.stderr)
    return 2


def _load(name: str):
    """Import a command, and torch with it. Ctrl-C meanwhile ends the process, with status 130."""
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler
    if ours and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
        try:
            return importlib.import_module(f"tinytf.cli.{name}").main
        finally:
            signal.signal(signal.SIGINT, before)
    return importlib.import_module(f"tinytf.cli.{name}").main


if __name__ == "__main__":
    status = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: leave in peace
    sys.exit(status)
