"""`python -m tinytf` runs the command that is named, and lists them."""

import argparse
import re
import sys
from types import SimpleNamespace

import pytest

from tinytf.__main__ import COMMANDS, main


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_gets_the_arguments_after_its_name(command, monkeypatch):
    given = []
    ran = SimpleNamespace(main=lambda arguments: given.append(arguments) or 7)
    monkeypatch.setitem(sys.modules, f"tinytf.cli.{command}", ran)
    assert main([command, "--lr", "1"]) == 7
    assert given == [["--lr", "1"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_there(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert "usage: " in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_explains_every_option_and_gives_its_default(command, monkeypatch):
    parsers = []

    def caught(parser, arguments):
        parsers.append(parser)
        raise SystemExit

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", caught)
    with pytest.raises(SystemExit):
        main([command])
    shown = " ".join(parsers[0].format_help().split())
    assert not re.search(r"tinytf\.\w|\.\.\. \.", shown)  # no module's name
    for action in parsers[0]._actions:
        assert action.help, f"{action.dest} is not explained"
        if action.default not in (None, False, "", argparse.SUPPRESS):
            assert f"default: {action.default}" in shown, action.dest


def test_help_lists_the_commands_and_anything_else_is_an_error(capsys):
    assert main(["--help"]) == 0
    assert all(command in capsys.readouterr().out for command in ("train",))
    for arguments, message in (([], "name a command"), (["fly"], "no command 'fly'")):
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert not out
        assert message in err
        assert all(f"  {command} " in err for command in COMMANDS)
