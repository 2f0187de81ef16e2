"""What the numbers of a data set give away by themselves: its facts, and flags for its leaks."""

from svgpbench_datasets.audit.facts import Facts, Flag, facts_of
from svgpbench_datasets.audit.flags import flags_of
from svgpbench_datasets.audit.report import Audit, audit, audit_dataset

__all__ = [
    "Audit",
    "Facts",
    "Flag",
    "audit",
    "audit_dataset",
    "facts_of",
    "flags_of",
]
