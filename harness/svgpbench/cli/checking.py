"""`svgpbench check`: compare the numbers of all backends with each other and with oracles."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from svgpbench.cli.options import AsJson, Backends, Device, OnDevice
from svgpbench.cli.printing import printer
from svgpbench.plugins import known_backends

FAILED = 1


def check_command(
    full: Annotated[bool, typer.Option("--full", help="Every case, not just a few each.")] = False,
    backend: Backends = None,
    device: OnDevice = Device.cpu,
    as_json: AsJson = False,
) -> None:
    """Check that backends agree, and with independent oracles."""
    backends = known_backends(backend)
    from svgpbench.checks import run_checks

    progress = Console(stderr=True)
    report = run_checks(
        backends=backends,
        full=full,
        device=device,
        on_progress=lambda text: progress.print(text, markup=False, highlight=False, style="dim"),
    )
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        wide = printer(100)
        wide.print(report.table())
        for line in report.lines():
            wide.print(line, soft_wrap=True)
    if not report.ok:
        raise typer.Exit(FAILED)
