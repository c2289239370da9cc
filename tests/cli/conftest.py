"""Small data files for the command line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support import make_rows, write_csv


@pytest.fixture
def small_csv(tmp_path):
    return write_csv(tmp_path / "small.csv", make_rows(120))


@pytest.fixture
def run_cli():
    """Run the command line as a user does, in a process of its own."""

    def run(*arguments, cwd=None, **environment):
        return subprocess.run(
            [sys.executable, "-m", "evidep", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            env=os.environ | {"COLUMNS": "100"} | environment,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture
def call_cli(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""
    from evidep.cli import main

    def call(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
