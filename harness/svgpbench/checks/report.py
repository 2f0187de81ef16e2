"""The report of a check: matrix entries, identities, growth of rounding, and a verdict."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from svgpbench.checks.completeness import Skip
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
    """Results of a check."""

    backends: list[str]
    full: bool
    entries: list[Entry]
    identities: list[Identity]
    rounding: list[Rounding]
    failures: list[str]  # processes and results that failed, one line each
    notes: list[str] = field(default_factory=list)  # parts that were not checked, and why
    skips: list[Skip] = field(default_factory=list)  # parts that a backend does not offer

    @property
    def ok(self) -> bool:
        """Return True if there are entries, no failures, and every result is within tolerance."""
        entries = all(e.ok for e in self.entries)
        others = all(i.ok for i in self.identities) and all(r.ok for r in self.rounding)
        return bool(self.entries) and not self.failures and entries and others

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON-able data; a number that is not finite becomes null."""

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
            "skipped": [asdict(skip) for skip in self.skips],
        }

    def table(self) -> Group:
        """Return tables of the matrix by method, the identities and the growth of rounding."""
        return Group(self._matrix(), self._identities(), self._rounding())

    def lines(self) -> list[Text]:
        """Return lines on skipped parts, with reasons, and on failures. Print them untruncated."""
        notes = [Text(note, style="yellow") for note in (*self._skip_lines(), *self.notes)]
        return [*notes, *self._verdict()]

    def _skip_lines(self) -> Iterator[str]:
        """Yield one line per backend and reason: the skipped groups, cases and identities."""
        for backend, why in dict.fromkeys((skip.backend, skip.why) for skip in self.skips):
            same = [skip for skip in self.skips if (skip.backend, skip.why) == (backend, why)]
            whole = {skip.what for skip in same if skip.group == "values"}
            counts = Counter(("", case.rpartition(" ")[2]) for case in whole) + Counter(
                (f"{COLUMNS[skip.group]} of ", skip.what.rpartition(" ")[2])
                for skip in same
                if skip.group and skip.what not in whole
            )
            what = [f"{group}{n} {dtype} cases" for (group, dtype), n in counts.items()]
            numbers = [x.what.partition(" ")[2] for x in same if x.what.startswith("identity")]
            what += [f"identities {', '.join(numbers)}"] if numbers else []
            what += ["the growth of rounding"] if any("trajectory" in x.what for x in same) else []
            yield f"{backend} skips {', '.join(what)}: {why}"

    def _matrix(self) -> Table:
        title = f"Worst difference, max|Δ| / max|value|, among {', '.join(self.backends)}"
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("method", overflow="fold")
        table.add_column("cases", justify="right", min_width=len("cases"))
        for name in COLUMNS.values():
            table.add_column(name, justify="right", min_width=len("1e-15"))
        for dtype in ("float64", "float32"):
            found, skips = self._by_method(dtype), self._skips_by_method(dtype)
            for method in dict.fromkeys((*found, *skips)):
                label = method if dtype == "float64" else f"{method}, float32"
                count = len({e.case for e in found[method]} | {s.what for s in skips[method]})
                groups = {skip.group for skip in skips[method]}
                cells = (_worst(found[method], c, skipped=c in groups) for c in COLUMNS)
                table.add_row(label, str(count), *cells)
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

    def _skips_by_method(self, dtype: str) -> dict[str, list[Skip]]:
        out: dict[str, list[Skip]] = defaultdict(list)
        for skip in self.skips:
            if skip.group and skip.what.endswith(dtype):
                out[skip.what.split(" | ")[0]].append(skip)
        return out

    def _by_identity(self) -> dict[int, list[Identity]]:
        out: dict[int, list[Identity]] = defaultdict(list)
        for i in self.identities:
            out[i.number].append(i)
        return out

    def _verdict(self) -> list[Text]:
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
        for line, times in Counter(self.failures).items():
            red.append(line if times == 1 else f"{line} ({times} times)")
        if red:
            return [Text(line, style="bold red") for line in red]
        return [Text("all within tolerance", style="green")]


def _worst(entries: list[Entry], group: str, *, skipped: bool) -> Text:
    found = [e for e in entries if e.group == group]
    if not found:
        return Text("skip" if skipped else "–")
    return _shown(max(e.worst for e in found), ok=all(e.ok for e in found))


def _shown(worst: float, *, ok: bool) -> Text:
    return Text(f"{worst:.0e}", style="green" if ok else "bold red")
