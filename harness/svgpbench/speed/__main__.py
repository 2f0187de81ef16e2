"""`python -m svgpbench.speed`."""

from __future__ import annotations

import sys

import typer

from svgpbench.errors import UserError
from svgpbench.speed.command import speed_command


def main() -> None:
    """Run the command; a mistake of the user's becomes one line on stderr."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(speed_command)
    try:
        app()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
