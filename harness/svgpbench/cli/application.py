"""The typer application, and the function that turns a `UserError` into one line on stderr."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, TextIO

import typer

from svgpbench import __version__
from svgpbench.cli.commands import Commands
from svgpbench.cli.printing import INTERRUPTED, USER_MISTAKE
from svgpbench.errors import RecordsWarning, UserError

app = typer.Typer(
    name="svgpbench",
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def overview(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Benchmark and reproducibility harness for sparse variational Gaussian processes.

    Start with `svgpbench doctor`, then `svgpbench list` and `svgpbench run adam2021-fig3`.
    """
    if version:
        typer.echo(f"svgpbench {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    0: success; 1: a cell or a check failed; 2: an error of the user; 130: interrupted.
    """
    sys.exit(exit_code(arguments))


def exit_code(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    An error of the user is printed as one line on stderr. Any other exception is raised.
    """
    command: Any = typer.main.get_command(app)
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with warnings.catch_warnings():
            # `catch_warnings` puts the old function back, which a caller from Python still needs
            warnings.showwarning = _show_warning
            # standalone, typer would print mistakes in its own form and exit; here it raises
            # them, and a `typer.Exit` comes back as its number
            return int(command.main(words, prog_name="svgpbench", standalone_mode=False) or 0)
    except UserError as error:
        return _refuse(str(error))
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return _refuse(f"no file can have a name so long: {str(error.filename)[:60]}...")
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        # A usage error. Its class depends on the version of typer; `format_message` does not.
        explain = getattr(error, "format_message", None)
        if explain is None:
            raise
        command_path = getattr(getattr(error, "ctx", None), "command_path", "") or "svgpbench"
        return _refuse(f"{explain()} (see `{command_path} --help`)")


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line on stderr, without the line of code if it is one for the user."""
    if issubclass(category, RecordsWarning):
        print(f"warning: {message}", file=sys.stderr)
    else:
        text = warnings.formatwarning(message, category, filename, lineno, line)
        print(text, end="", file=file or sys.stderr)


def _refuse(message: str) -> int:
    """Print a message as one line on stderr, and return the exit code of a user's mistake."""
    text = " ".join(message.replace("Value error, ", "").split())
    print(f"error: {text}", file=sys.stderr)
    return USER_MISTAKE
