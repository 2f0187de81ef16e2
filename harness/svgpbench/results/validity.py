"""Check that a record is valid: same configuration, same data, same version of the method, same plugins."""

from __future__ import annotations

from svgpbench.experiments.cell import identify
from svgpbench.experiments.identity import OtherCode, cell_code
from svgpbench.results.records import Record


def outdated_reason(record: Record) -> str:
    """Return why a record is outdated, in a few words; empty if it is valid.

    Raises `UserError` if its data or its method are not installed here.
    """
    # first, as it needs no data, which may not be installed here
    if why := other_plugins(record):
        return why
    current = identify(record.config)
    if current.method_version != record.method_version:
        name = record.config.method.name
        return f"made by version {record.method_version} of {name}, now at {current.method_version}"
    if current.fingerprint != record.data.get("fingerprint"):
        return "made from other data"
    if current.cell_id != record.cell_id:
        return "its id is not that of its configuration"
    return ""


def other_plugins(record: Record) -> str:
    """Return which plugins made a record with other code than theirs now, in words; empty if none did.

    A record without digests, of an older version, is valid.
    """
    if not record.code:
        return ""
    other = OtherCode.between(record.code, cell_code(record.config)).plugins
    return f"made by other code of {other}" if other else ""
