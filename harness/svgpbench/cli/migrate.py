"""`svgpbench migrate`: rewrite records of an older version in the current schema."""

from __future__ import annotations

from svgpbench.cli.options import RESULTS, ResultsFolder
from svgpbench.cli.printing import say


def migrate_command(results: ResultsFolder = RESULTS) -> None:
    """Rewrite records of an older schema; no number changes."""
    from svgpbench.results.migration import migrate

    done = migrate(results)
    say(f"{done.rewritten} records rewritten, {done.current} were current")
    if done.replicas:
        say(
            f"{len(done.replicas)} replicas removed: they moved targets where they move inputs now; "
            "`svgpbench run` makes them anew"
        )
