"""Whether a record still says what its cell gives: same configuration, same data, same method."""

from __future__ import annotations

from svgpbench.experiments.cell import identify
from svgpbench.results.records import Record


def why_superseded(record: Record) -> str:
    """Why a record counts no more, in a few words; empty where it does.

    Raises `UserError` where its data or its method are not at hand.
    """
    now = identify(record.config)
    if now.method_version != record.method_version:
        name = record.config.method.name
        return f"made by version {record.method_version} of {name}, now at {now.method_version}"
    if now.fingerprint != record.data.get("fingerprint"):
        return "made from other data"
    if now.cell_id != record.cell_id:
        return "its id is not that of its configuration"
    return ""
