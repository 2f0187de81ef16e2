"""The report of a check: matrix entries, identities, growth of rounding, and a verdict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from svgpbench.checks.completeness import Skip
from svgpbench.checks.identities import IdentityResult
from svgpbench.checks.matrix import MatrixEntry
from svgpbench.checks.rounding import Rounding
from svgpbench.json_values import json_value
from svgpbench.output.table import Column, Styled, Table, number

Item = TypeVar("Item")
Key = TypeVar("Key")

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
    entries: list[MatrixEntry]
    identities: list[IdentityResult]
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

        def rows(items: Sequence[MatrixEntry | IdentityResult | Rounding]) -> list[dict[str, Any]]:
            return [{**asdict(item), "ok": item.ok} for item in items]

        report: dict[str, Any] = json_value(
            {
                "ok": self.ok,
                "backends": self.backends,
                "full": self.full,
                "matrix": rows(self.entries),
                "identities": rows(self.identities),
                "rounding": rows(self.rounding),
                "failures": self.failures,
                "notes": self.notes,
                "skipped": self.skips,
            }
        )
        return report

    def tables(self) -> tuple[Table, ...]:
        """Return tables of the matrix by method, the identities and the growth of rounding."""
        by_name = _grouped(self.identities, lambda i: i.name)
        worst = [max(outcomes, key=lambda i: i.worst) for outcomes in by_name.values()]
        identities = Table(
            (Column("identity"), Column("statement"), number("worst")),
            [
                [i.name, i.statement, _styled(i.worst, ok=all(x.ok for x in by_name[i.name]))]
                for i in worst
            ],
        )
        names = ("M-steps, Z learned", "between backends", "one, X perturbed by 1e-15")
        rounding = Table(
            [number(name) for name in names],
            [
                [r.m_steps, _styled(r.backends, ok=r.ok), f"{r.perturbed:.0e}"]
                for r in self.rounding
            ],
        )
        return tuple(table for table in (self._matrix_table(), identities, rounding) if table.rows)

    def lines(self) -> list[Styled]:
        """Return lines on skipped parts, with reasons, and on failures."""
        notes = [Styled(note, "yellow") for note in (*self._skip_lines(), *self.notes)]
        return [*notes, *self._verdict()]

    def _skip_lines(self) -> Iterator[str]:
        """Yield one line per backend and reason: the skipped groups, cases and identities."""
        for backend, why in dict.fromkeys((skip.backend, skip.why) for skip in self.skips):
            skips = [skip for skip in self.skips if (skip.backend, skip.why) == (backend, why)]
            skipped_cases = {skip.what for skip in skips if skip.group == "values"}
            counts = Counter(("", case.rpartition(" ")[2]) for case in skipped_cases) + Counter(
                (f"{COLUMNS[skip.group]} of ", skip.what.rpartition(" ")[2])
                for skip in skips
                if skip.group and skip.what not in skipped_cases
            )
            what = [f"{group}{n} {dtype} cases" for (group, dtype), n in counts.items()]
            names = [x.what.partition(" ")[2] for x in skips if x.what.startswith("identity")]
            what += [f"identities {', '.join(names)}"] if names else []
            what += ["the growth of rounding"] if any("trajectory" in x.what for x in skips) else []
            yield f"{backend} skips {', '.join(what)}: {why}"

    def _matrix_table(self) -> Table:
        columns = (Column("method"), number("cases"), *map(number, COLUMNS.values()))
        rows: list[list[Any]] = []
        for dtype in ("float64", "float32"):
            entries = _grouped(
                (e for e in self.entries if e.case.endswith(dtype)),
                lambda e: e.case.split(" | ")[0],
            )
            skips = _grouped(
                (s for s in self.skips if s.group and s.what.endswith(dtype)),
                lambda s: s.what.split(" | ")[0],
            )
            for method in dict.fromkeys((*entries, *skips)):
                label = method if dtype == "float64" else f"{method}, float32"
                count = len({e.case for e in entries[method]} | {s.what for s in skips[method]})
                groups = {skip.group for skip in skips[method]}
                cells = (_worst(entries[method], c, skipped=c in groups) for c in COLUMNS)
                rows.append([label, count, *cells])
        title = f"Worst difference, max|Δ| / max|value|, among {', '.join(self.backends)}"
        return Table(columns, rows, title)

    def _verdict(self) -> list[Styled]:
        """Return one line per result out of tolerance and per failure, or that there are none.

        A report without entries says that nothing was compared.
        """
        red = [
            f"{e.case}: {e.group} {e.worst:.1e} > {e.tolerance:.0e} in {e.array} "
            f"({e.pair[0]} – {e.pair[1]})"
            for e in self.entries
            if not e.ok
        ]
        red += [
            f"identity {i.name} on {i.backend}: {i.worst:.1e} > {i.tolerance:.0e} ({i.statement})"
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
        if not self.ok:
            return [Styled(line, "bold red") for line in red or ["nothing was compared"]]
        return [Styled("all within tolerance", "green")]


def _grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by key, with an empty list for any other key."""
    groups: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _worst(entries: Sequence[MatrixEntry], group: str, *, skipped: bool) -> Styled | str | None:
    """Return the worst difference in a group of arrays, "skip" if it was skipped, or None."""
    entries = [e for e in entries if e.group == group]
    if not entries:
        return "skip" if skipped else None
    return _styled(max(e.worst for e in entries), ok=all(e.ok for e in entries))


def _styled(worst: float, *, ok: bool) -> Styled:
    """Format a difference in green if it is within tolerance, else in bold red."""
    return Styled(f"{worst:.0e}", "green" if ok else "bold red")
