"""Check that a record is valid: same configuration, same data, same version of the method."""

from __future__ import annotations

from svgpbench.experiments.cell import identify
from svgpbench.results.records import Record


def outdated_reason(record: Record) -> str:
    """Return why a record is outdated, in a few words; empty if it is valid.

    Raises `UserError` if its data or its method are not installed here.
    """
    current = identify(record.config)
    if current.method_version != record.method_version:
        name = record.config.method.name
        return f"made by version {record.method_version} of {name}, now at {current.method_version}"
    if current.fingerprint != record.data.get("fingerprint"):
        return "made from other data"
    if current.cell_id != record.cell_id:
        return "its id is not that of its configuration"
    return ""
