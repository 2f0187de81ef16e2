"""Data sets (registered or a user's own table), splits and standardisation; mistakes raise `DataError`."""

from svgpbench_datasets.dataset import Dataset, Task, fingerprint
from svgpbench_datasets.entry import DatasetEntry
from svgpbench_datasets.errors import DataError
from svgpbench_datasets.files import DataFile
from svgpbench_datasets.registry import REGISTRY, Registry
from svgpbench_datasets.splits import (
    Split,
    block_fold,
    column_fold,
    group_fold,
    hold_out,
    k_fold,
    random_split,
)
from svgpbench_datasets.standardise import (
    Prepared,
    StandardisedRows,
    Standardiser,
    prepare,
    prepare_whole,
)
from svgpbench_datasets.user_table import load_user_table

__all__ = [
    "REGISTRY",
    "DataError",
    "DataFile",
    "Dataset",
    "DatasetEntry",
    "Prepared",
    "Registry",
    "Split",
    "StandardisedRows",
    "Standardiser",
    "Task",
    "block_fold",
    "column_fold",
    "fingerprint",
    "group_fold",
    "hold_out",
    "k_fold",
    "load_user_table",
    "prepare",
    "prepare_whole",
    "random_split",
]
