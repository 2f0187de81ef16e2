"""What the numbers of a data set give away by themselves: its facts, and flags for its leaks."""

from svgpbench_datasets.audit.facts import Facts, Flag, facts_of
from svgpbench_datasets.audit.flags import flags_of
from svgpbench_datasets.audit.report import Audit, audit, audit_dataset, audit_split

__all__ = [
    "Audit",
    "Facts",
    "Flag",
    "audit",
    "audit_dataset",
    "audit_split",
    "facts_of",
    "flags_of",
]
