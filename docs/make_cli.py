"""Writes docs/cli.md from the commands' own help."""

from pathlib import Path

import typer
from typer.testing import CliRunner

from tutelage.present.cli import app

TARGET = Path(__file__).parent / "cli.md"
INTRO = """# Command line

<!-- Made by docs/make_cli.py (`make pages`); do not edit. -->

Every command is a skin over one public function. `-h` explains each; `--json` prints JSON on standard output and
nothing else; progress goes to standard error, and `--quiet` silences it.

Exit codes: 0 done; 1 a claim that must hold failed, a certificate or a stored run disagreed, or a part crashed; 2 bad
input, told in one sentence; 130 stopped by Ctrl-C.
"""


def help_of(*words: str) -> str:
    """The help text of a command, as on a terminal of fixed width."""
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="tutelage", env={"COLUMNS": "80"})
    return "\n".join(line.rstrip() for line in result.stdout.strip().splitlines())


def pages() -> dict[Path, str]:
    """The page by its place."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    parts = [INTRO, f"```text\n{help_of()}\n```"]
    parts += [f"## {name}\n\n```text\n{help_of(name)}\n```" for name in commands]
    return {TARGET: "\n\n".join(part.strip() for part in parts) + "\n"}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
