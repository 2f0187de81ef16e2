"""What a check found: entries of the matrix, identities, growth of rounding; green or red."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from svgpbench.checks.identities import Identity
from svgpbench.checks.matrix import Entry
from svgpbench.checks.rounding import Rounding

COLUMNS = {
    "values": "values",
    "gradients": "grads",
    "e_step": "E×1",
    "e_trajectory": "E×50",
    "m_trajectory": "M×50",
    "dense": "dense",
}


@dataclass(frozen=True)
class Report:
    """Everything a check measured."""

    backends: list[str]
    full: bool
    entries: list[Entry]
    identities: list[Identity]
    rounding: list[Rounding]
    failures: list[str]  # processes that died, one line each
    notes: list[str] = field(default_factory=list)  # what was not looked at, and why

    @property
    def ok(self) -> bool:
        """Whether every difference is within its tolerance and every process ended well."""
        entries = all(e.ok for e in self.entries)
        others = all(i.ok for i in self.identities) and all(r.ok for r in self.rounding)
        return bool(self.entries) and not self.failures and entries and others

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON-able data; a difference that is not finite is null."""

        def rows(items: list[Any]) -> list[dict[str, Any]]:
            return [
                {
                    k: None if isinstance(v, float) and not math.isfinite(v) else v
                    for k, v in {**asdict(x), "ok": x.ok}.items()
                }
                for x in items
            ]

        return {
            "ok": self.ok,
            "backends": self.backends,
            "full": self.full,
            "matrix": rows(list(self.entries)),
            "identities": rows(list(self.identities)),
            "rounding": rows(list(self.rounding)),
            "failures": self.failures,
            "notes": self.notes,
        }

    def table(self) -> Group:
        """The matrix by method, the identities, the growth of rounding, and what is red."""
        notes = [Text(note, style="yellow") for note in self.notes]
        return Group(self._matrix(), self._identities(), self._rounding(), *notes, self._verdict())

    def _matrix(self) -> Table:
        title = f"Worst difference, max|Δ| / max|value|, among {', '.join(self.backends)}"
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("method", overflow="fold")
        table.add_column("cases", justify="right", min_width=len("cases"))
        for name in COLUMNS.values():
            table.add_column(name, justify="right", min_width=len("1e-15"))
        for dtype in ("float64", "float32"):
            for method, found in self._by_method(dtype).items():
                label = method if dtype == "float64" else f"{method}, float32"
                count = len({e.case for e in found})
                table.add_row(label, str(count), *(_worst(found, c) for c in COLUMNS))
        return table

    def _identities(self) -> Table:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in ("", "identity", "worst"):
            table.add_column(name, justify="left" if name == "identity" else "right")
        for number, same in self._by_identity().items():
            worst = max(same, key=lambda i: i.worst)
            cell = _shown(worst.worst, ok=all(i.ok for i in same))
            table.add_row(str(number), worst.statement, cell)
        return table

    def _rounding(self) -> Table:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in ("M-steps, Z learned", "between backends", "one, X perturbed by 1e-15"):
            table.add_column(name, justify="right")
        for r in self.rounding:
            cell = _shown(r.backends, ok=r.ok)
            table.add_row(str(r.m_steps), cell, f"{r.perturbed:.0e}")
        return table

    def _by_method(self, dtype: str) -> dict[str, list[Entry]]:
        out: dict[str, list[Entry]] = defaultdict(list)
        for e in self.entries:
            if e.case.endswith(dtype):
                out[e.case.split(" | ")[0]].append(e)
        return out

    def _by_identity(self) -> dict[int, list[Identity]]:
        out: dict[int, list[Identity]] = defaultdict(list)
        for i in self.identities:
            out[i.number].append(i)
        return out

    def _verdict(self) -> Text:
        red = [
            f"{e.case}: {e.group} {e.worst:.1e} > {e.tolerance:.0e} in {e.array} "
            f"({e.pair[0]} – {e.pair[1]})"
            for e in self.entries
            if not e.ok
        ]
        red += [
            f"identity {i.number} on {i.backend}: {i.worst:.1e} > {i.tolerance:.0e} ({i.statement})"
            for i in self.identities
            if not i.ok
        ]
        red += [
            f"rounding after {r.m_steps} M-steps: {r.backends:.1e} > {r.tolerance:.0e}"
            for r in self.rounding
            if not r.ok
        ]
        red += self.failures
        if red:
            return Text("\n".join(red), style="bold red")
        return Text("all within tolerance", style="green")


def _worst(entries: list[Entry], group: str) -> Text:
    found = [e for e in entries if e.group == group]
    if not found:
        return Text("–")
    return _shown(max(e.worst for e in found), ok=all(e.ok for e in found))


def _shown(worst: float, *, ok: bool) -> Text:
    return Text(f"{worst:.0e}", style="green" if ok else "bold red")
