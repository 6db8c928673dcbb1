"""What tests of the command line share."""

from __future__ import annotations

import importlib.util

from bregpath.cli import main


def hide(monkeypatch, *modules):
    """As if some modules were not installed."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name in modules else find_spec(name, *a))


def drop(*names):
    return [part for name in names for part in ("--drop", name)]


def error_of(capsys, arguments, code=2):
    """The one line on stderr of a command that fails."""
    try:
        assert main(arguments) == code
    except SystemExit as exit:
        assert exit.code == code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("bregpath: error: ")
    return lines[0]
