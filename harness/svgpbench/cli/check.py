"""`svgpbench check`: compare the numbers of all backends with each other and with oracles."""

from __future__ import annotations

from typing import Annotated

import typer

from svgpbench.backends import known_backends
from svgpbench.cli.options import AsJson, Backends, Device, OnDevice
from svgpbench.cli.printing import FAILED, print_json, show, tell
from svgpbench.errors import UserError


def check_command(
    full: Annotated[
        bool, typer.Option("--full", help="Run all cases, not only a few of each.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare one step of each method, in seconds.")
    ] = False,
    backend: Backends = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="Name of a method to check; repeat for several."),
    ] = None,
    likelihood: Annotated[
        list[str] | None,
        typer.Option("--likelihood", help="Name of a likelihood to check; repeat for several."),
    ] = None,
    device: OnDevice = Device.cpu,
    as_json: AsJson = False,
) -> None:
    """Check that backends agree, and with independent oracles.

    With --method or --likelihood the identities, which are of the whole package, are left out.
    """
    backends = known_backends(backend)
    if quick and full:
        raise UserError("--quick and --full exclude each other; give one")
    from svgpbench.checks import QuickReport, Report, quick_check, run_checks

    report: Report | QuickReport
    if quick:
        report = quick_check(
            backends,
            device=device,
            methods=method or (),
            likelihoods=likelihood or (),
            on_progress=tell,
        )
    else:
        report = run_checks(
            backends=backends,
            full=full,
            device=device,
            methods=method or (),
            only_likelihoods=likelihood or (),
            on_progress=tell,
        )
    if as_json:
        print_json(report.to_json())
    else:
        show(*report.tables(), notes=report.lines())
    if not report.ok:
        raise typer.Exit(FAILED)
