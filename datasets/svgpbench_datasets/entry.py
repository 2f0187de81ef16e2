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
Count: TypeAlias = Annotated[int, Field(ge=0)]
Reader: TypeAlias = Literal[
    "whitespace", "csv", "semicolon", "tab", "arff",
    "idx", "mat", "numpy", "xls", "parquet", "feather",
]  # fmt: skip

_RANGE = re.compile(r"(\D*)([0-9]+)\.\.\1([0-9]+)")
_LONGEST_RANGE = 4096


class FixedSplits(Strict):
    """Splits that were published with a data set: a leading training part, or a file of masks."""

    train_rows: PositiveInt | None = None  # the first rows, which train; the rest test: one split
    masks: DataFile | None = None  # CSV of 0 and 1: a row of data a line, a split a column; 1 tests
    count: PositiveInt = 1  # splits there are

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
    seed: Count

    @model_validator(mode="after")
    def _generator_exists(self) -> Generated:
        if self.name not in GENERATORS:
            raise ValueError(f"no generator {self.name!r} (known: {', '.join(GENERATORS)})")
        return self


class DatasetEntry(Strict):
    """What is known of one data set or variant of one, read from files, generated, or made.

    Of `missing`, `middle-code` makes a category that is missing the middle of the codes.
    """

    name: Name  # what the user calls it
    title: Text  # what it is, in a few words
    task: Task
    files: tuple[File, ...] = ()  # those of one part stand side by side; parts are stacked
    parts: tuple[PositiveInt, ...] = ()  # rows of each stacked part; empty for one
    generated: Generated | None = None  # in place of files, what draws the numbers
    made: FilePath | None = None  # in place of files, what `svgpbench data make` puts in the cache
    reader: Reader | tuple[Reader, ...] | None = None  # the format of the files, or of each file
    skip_lines: Count | tuple[Count, ...] = 0  # before the header or the first row
    header: bool = False  # whether a line names the columns; it must name them as `columns` does
    number_rows: bool = False  # puts the row number, from 1 in each file, before the first column
    variable: Text | None = None  # of a .mat file
    rows: PositiveInt  # N, as loaded
    columns: tuple[Text, ...]  # of a part, in its order; `f1..f9` stands for nine names
    features: Annotated[tuple[Text, ...], Field(min_length=1)]  # the D input columns
    target: Text  # the column to predict
    outputs: tuple[Text, ...] = ()  # where several columns may be the target, see `with_output`
    divide_by: Annotated[float, Field(gt=0)] = 1.0  # all inputs, such as bytes by 255
    categories: dict[str, tuple[Text, ...]] = Field(default_factory=dict)
    """The words of a column of words; a word becomes its place in the list."""
    split_cells: dict[str, tuple[Text, tuple[Text, ...]]] = Field(default_factory=dict)
    """For a column such as a date, its separator and the names of its pieces."""
    missing: Literal["refuse", "drop-row", "middle-code"] = "refuse"  # in a feature or the target
    labels: dict[str, int] | None = None  # each label as written, and its class number
    splits: FixedSplits | None = None  # what was published with it
    upstream: Text  # the address it was published at, or what generates it
    licence: Text  # what is known of it
    citation: Text  # what to cite
    defects: tuple[Text, ...] = ()  # what to know before trusting a result on it
    leaks: bool = False  # a variant that hands the target to the model, kept to repeat a result
    unseen: bool = False  # no copy of a file had been seen when this was declared
    fingerprint: Fingerprint | None = None  # None where numbers are unseen, or made by the user
    output_fingerprints: dict[str, Fingerprint] = Field(default_factory=dict)
    """With another output as the target, by its name."""

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
        if extra := self.output_fingerprints.keys() - set(self.outputs):
            raise ValueError(f"fingerprints of what is no output: {sorted(extra)}")
        return self

    @model_validator(mode="after")
    def _labels_fit_the_task(self) -> DatasetEntry:
        if (self.task == "regression") != (self.labels is None):
            raise ValueError("labels belong to classification, and to it only")
        numbers = sorted(set((self.labels or {}).values()))
        few = len(numbers) < 2 if self.task == "multiclass" else len(numbers) not in (0, 2)
        if few or numbers != list(range(len(numbers))):
            raise ValueError("labels must be numbered 0, 1, ...; two for classification")
        return self

    @model_validator(mode="after")
    def _parts_fit_the_files(self) -> DatasetEntry:
        parts, count = self.part_rows, len(self.files)
        if not self.files:
            return self
        if sum(parts) != self.rows:
            raise ValueError(f"parts of {sum(parts)} rows in all where {self.rows} are declared")
        if count % len(parts):
            raise ValueError(f"{count} files cannot make {len(parts)} parts")
        for key in ("reader", "skip_lines"):
            of_each = getattr(self, key)
            if isinstance(of_each, tuple) and len(of_each) != count:
                raise ValueError(f"{key} for {len(of_each)} files where {count} are declared")
        if self.splits and (self.splits.train_rows or 0) >= self.rows:
            raise ValueError("splits.train_rows leaves no test row")
        return self

    @model_validator(mode="after")
    def _numbers_are_pinned_unless_unseen(self) -> DatasetEntry:
        unpinned = any(isinstance(file, UnseenFile) for file in self.files)
        if unpinned and len(self.files) > len(self.part_rows):
            raise ValueError(
                "a file without sha256 stands beside another: its form does not tell it"
            )
        if unpinned and not self.unseen:
            raise ValueError("a file has no sha256: give one, or say `unseen = true`")
        if self.unseen and self.fingerprint is not None:
            raise ValueError("unseen numbers have no fingerprint: leave one of both out")
        if not (self.unseen or self.made) and self.fingerprint is None:
            how = "give a fingerprint (zeros, then `svgpbench data pin FILE --write`)"
            raise ValueError(f"{how}, or say `unseen = true`")
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
        first = {number: label for label, number in reversed(self.labels.items())}
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

        Its fingerprint is the one declared for that output. Where none is, the checksums of the files hold.

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
        fingerprint = self.output_fingerprints.get(output)
        return self.model_copy(update={"name": name, "target": output, "fingerprint": fingerprint})

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
        if isinstance(name, str) and (match := _RANGE.fullmatch(name)):
            stem, first, last = match[1], int(match[2]), int(match[3])
            if not first <= last < first + _LONGEST_RANGE:
                raise ValueError(f"{name!r} names no columns")
            full.extend(f"{stem}{number}" for number in range(first, last + 1))
        else:
            full.append(name)
    return full
