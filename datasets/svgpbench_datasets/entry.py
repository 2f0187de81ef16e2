"""The form of one entry of a registry file; anything else in it is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PositiveInt, model_validator

from svgpbench_datasets.dataset import Task
from svgpbench_datasets.errors import DataError, did_you_mean
from svgpbench_datasets.files import DataFile, File, FilePath, Strict, UnseenFile
from svgpbench_datasets.generated.generators import GENERATORS

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Fingerprint: TypeAlias = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*(:[a-z0-9][a-z0-9-]*)?$")]
Reader: TypeAlias = Literal[
    "whitespace",
    "csv",
    "semicolon",
    "tab",
    "arff",
    "idx",
    "mat",
    "numpy",
    "xls",
    "parquet",
    "feather",
]

_RANGE = re.compile(r"(\D*)([0-9]+)\.\.\1([0-9]+)")
_LONGEST_RANGE = 4096


class FixedSplits(Strict):
    """Splits that were published with a data set: a leading training part, or a file of masks.

    Attributes:
        train_rows: the first rows, which train; the rest test: one split.
        masks: a CSV file of 0 and 1, one row a data row, one column a split; 1 marks a test row.
        count: how many splits there are.
    """

    train_rows: PositiveInt | None = None
    masks: DataFile | None = None
    count: PositiveInt = 1

    @model_validator(mode="after")
    def _one_of_both(self) -> FixedSplits:
        if (self.train_rows is None) == (self.masks is None):
            raise ValueError("give either train_rows or masks")
        if self.train_rows is not None and self.count != 1:
            raise ValueError("train_rows makes one split: leave count out")
        return self


class Generated(Strict):
    """A generator of generated/generators.py and its seed."""

    name: str
    seed: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _generator_exists(self) -> Generated:
        if self.name not in GENERATORS:
            raise ValueError(f"no generator {self.name!r} (known: {', '.join(GENERATORS)})")
        return self


class DatasetEntry(Strict):
    """What is known of one data set or variant of one, read from files or generated.

    Attributes:
        name: what the user calls it.
        title: what it is, in a few words.
        task: what is predicted.
        files: the files. Those of one part stand side by side; parts are stacked.
        parts: the rows of each stacked part, such as a training and a test file; empty for one.
        generated: in place of files, what draws the numbers.
        made: in place of files, the Parquet file in the cache that `svgpbench data make` makes.
        reader: the format of the files, or one format for each file.
        skip_lines: lines before the header or the first row.
        header: whether a line names the columns; it must name them as `columns` does.
        number_rows: whether to put the row number, from 1 in each file, before the first column.
        variable: the variable of a .mat file.
        rows: N, as loaded.
        columns: every column of a part, in its order; `f1..f9` stands for nine names.
        features: the D input columns.
        target: the column to predict.
        outputs: for a table of several outputs, the columns that may be the target, see `with_output`.
        divide_by: what to divide the inputs by, such as 255 for bytes.
        categories: for a column of words, the words; a word becomes its place in the list.
        split_cells: for a column such as a date, its separator and the names of its pieces.
        missing: what happens to a row with a missing value in a feature or the target: `refuse`,
            `drop-row`, or `middle-code` (a category becomes the middle of the codes).
        labels: for classification, each label as written and its class number.
        splits: what was published with it.
        upstream: the address it was published at, or what generates it.
        licence: what is known of its licence.
        citation: what to cite.
        defects: what to know before trusting a result on it.
        leaks: whether it is a variant that hands the target to the model, kept to repeat a result.
        unseen: whether no copy of a file has been seen when this was declared.
        fingerprint: of the loaded numbers; None where they are unseen, or made on the user's machine.
    """

    name: Name
    title: Text
    task: Task
    files: tuple[File, ...] = ()
    generated: Generated | None = None
    made: FilePath | None = None
    parts: tuple[PositiveInt, ...] = ()
    reader: Reader | tuple[Reader, ...] | None = None
    skip_lines: Annotated[int, Field(ge=0)] | tuple[Annotated[int, Field(ge=0)], ...] = 0
    header: bool = False
    number_rows: bool = False
    variable: Text | None = None
    rows: PositiveInt
    columns: tuple[Text, ...]
    features: Annotated[tuple[Text, ...], Field(min_length=1)]
    target: Text
    outputs: tuple[Text, ...] = ()
    divide_by: Annotated[float, Field(gt=0)] = 1.0
    categories: dict[str, tuple[Text, ...]] = Field(default_factory=dict)
    split_cells: dict[str, tuple[Text, tuple[Text, ...]]] = Field(default_factory=dict)
    missing: Literal["refuse", "drop-row", "middle-code"] = "refuse"
    labels: dict[str, int] | None = None
    splits: FixedSplits | None = None
    upstream: Text
    licence: Text
    citation: Text
    defects: tuple[Text, ...] = ()
    leaks: bool = False
    unseen: bool = False
    fingerprint: Fingerprint | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        """Write out `f1..f9`, `classes = K`, and features left out: all but the outputs."""
        if not isinstance(data, dict):
            return data
        full = dict(data)
        for key in ("columns", "features", "outputs"):
            if isinstance(full.get(key), list | tuple):
                full[key] = _written_out(full[key])
        classes = full.pop("classes", None)
        if isinstance(classes, int) and "labels" not in full:
            full["labels"] = {str(number): number for number in range(classes)}
        if "features" not in full:
            predicted = {full.get("target"), *full.get("outputs", ())}
            full["features"] = [one for one in full.get("columns", ()) if one not in predicted]
        return full

    @model_validator(mode="after")
    def _has_one_origin(self) -> DatasetEntry:
        origins = (bool(self.files), self.generated is not None, self.made is not None)
        if sum(origins) != 1 or bool(self.files) != (self.reader is not None):
            raise ValueError("give either files with a reader, or what it is generated or made by")
        return self

    @model_validator(mode="after")
    def _columns_agree(self) -> DatasetEntry:
        for group in (self.columns, self.features, self.outputs):
            if len(set(group)) < len(group):
                raise ValueError("a column is named twice")
        named = {*self.features, self.target, *self.outputs, *self.categories}
        if unknown := named - set(self.columns):
            raise ValueError(f"not among the columns: {sorted(unknown)}")
        for output in (self.target, *self.outputs):
            if output in self.features:
                raise ValueError(f"the target {output!r} is among the features")
        if self.outputs and (self.target not in self.outputs or self.task != "regression"):
            raise ValueError("outputs are those of a regression, the target among them")
        return self

    @model_validator(mode="after")
    def _labels_fit_the_task(self) -> DatasetEntry:
        numbers = sorted(set((self.labels or {}).values()))
        if (self.task == "regression") != (self.labels is None):
            raise ValueError("labels belong to classification, and to it only")
        if numbers != list(range(len(numbers))) or (
            (self.task == "classification" and len(numbers) != 2)
            or (self.task == "multiclass" and len(numbers) < 2)
        ):
            raise ValueError("labels must be numbered 0, 1, ...; two for classification")
        return self

    @model_validator(mode="after")
    def _parts_fit_the_files(self) -> DatasetEntry:
        parts = self.part_rows
        if not self.files:
            return self
        if sum(parts) != self.rows:
            raise ValueError(f"parts of {sum(parts)} rows in all where {self.rows} are declared")
        if len(self.files) % len(parts):
            raise ValueError(f"{len(self.files)} files cannot make {len(parts)} parts")
        for key in ("reader", "skip_lines"):
            given = getattr(self, key)
            if isinstance(given, tuple) and len(given) != len(self.files):
                raise ValueError(
                    f"{key} for {len(given)} files where {len(self.files)} are declared"
                )
        if self.splits and (self.splits.train_rows or 0) >= self.rows:
            raise ValueError("splits.train_rows leaves no test row")
        return self

    @model_validator(mode="after")
    def _numbers_are_pinned_unless_unseen(self) -> DatasetEntry:
        if self.unseen and self.fingerprint is not None:
            raise ValueError("unseen numbers have no fingerprint: leave one of both out")
        if not self.unseen and any(isinstance(file, UnseenFile) for file in self.files):
            raise ValueError("a file has no sha256: give one, or say `unseen = true`")
        if not (self.unseen or self.made) and self.fingerprint is None:
            raise ValueError(
                "give a fingerprint (zeros, then `svgpbench data pin FILE --write`), "
                "or say `unseen = true`"
            )
        return self

    @model_validator(mode="after")
    def _form_tells_unseen_files(self) -> DatasetEntry:
        beside = len(self.files) > len(self.part_rows)
        if beside and any(isinstance(file, UnseenFile) for file in self.files):
            raise ValueError(
                "a file without sha256 stands beside another: its form does not tell it"
            )
        return self

    @property
    def base_name(self) -> str:
        """The data set that this is, or is a variant or an output of."""
        return re.split("[:@]", self.name)[0]

    @property
    def class_labels(self) -> tuple[str, ...] | None:
        """The labels as written, class 0 first, one a class; None for regression."""
        if self.labels is None:
            return None
        first: dict[int, str] = {}
        for label, number in self.labels.items():
            first.setdefault(number, label)
        return tuple(first[number] for number in sorted(first))

    @property
    def part_rows(self) -> tuple[int, ...]:
        """The rows of each stacked part."""
        return self.parts or (self.rows,)

    @property
    def all_files(self) -> tuple[File, ...]:
        """The files, and that of the published splits."""
        masks = self.splits.masks if self.splits else None
        return self.files if masks is None else (*self.files, masks)

    @property
    def shipped(self) -> bool:
        """Whether every file comes with the package."""
        return self.made is None and all(file.shipped for file in self.files)

    def with_output(self, output: str) -> DatasetEntry:
        """The same table with another of its outputs as the target: `NAME@OUTPUT`.

        Its numbers have no declared fingerprint; the checksums of the files hold.

        Raises:
            DataError: a column that is not declared as an output.
        """
        if output not in self.outputs:
            known = f"its outputs: {', '.join(self.outputs)}" if self.outputs else "it has one"
            raise DataError(
                f"data set {self.name!r} has no output {output!r}"
                f"{did_you_mean(output, self.outputs)} ({known})"
            )
        if output == self.target:
            return self
        name = f"{self.name}@{output}"
        return self.model_copy(update={"name": name, "target": output, "fingerprint": None})

    def reader_of(self, file: int) -> Reader:
        """The format of a file, by its place in `files`."""
        reader = self.reader[file] if isinstance(self.reader, tuple) else self.reader
        assert reader is not None  # validated: files have one
        return reader

    def skipped_of(self, file: int) -> int:
        """The lines before the header or first row of a file, by its place in `files`."""
        return self.skip_lines[file] if isinstance(self.skip_lines, tuple) else self.skip_lines


def _written_out(names: Iterable[Any]) -> list[Any]:
    full: list[Any] = []
    for name in names:
        match = _RANGE.fullmatch(name) if isinstance(name, str) else None
        if match is None:
            full.append(name)
            continue
        stem, first, last = match.groups()
        if not int(first) <= int(last) < int(first) + _LONGEST_RANGE:
            raise ValueError(f"{name!r} names no columns")
        full.extend(f"{stem}{number}" for number in range(int(first), int(last) + 1))
    return full
