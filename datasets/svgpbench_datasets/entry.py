"""The form of one entry of registry.toml; anything else in it is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PositiveInt, model_validator

from svgpbench_datasets.dataset import Task
from svgpbench_datasets.files import DataFile, Strict

Text: TypeAlias = Annotated[str, Field(min_length=1)]
Fingerprint: TypeAlias = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*(:[a-z0-9][a-z0-9-]*)?$")]


class DatasetEntry(Strict):
    """What is known of one shipped data set or variant of one.

    Attributes:
        name: what the user calls it.
        title: what it is, in a few words.
        task: what is predicted.
        files: the shipped files; the columns of several stand side by side.
        reader: how its text is separated.
        skip_lines: lines before the first row.
        rows: N.
        columns: every column of the files, in their order.
        features: the D input columns.
        target: the column to predict.
        labels: for classification, each label as written and its class number.
        upstream: the address it was published at.
        licence: what is known of its licence.
        citation: what to cite.
        defects: what to know before trusting a result on it.
        fingerprint: of the loaded numbers.
    """

    name: Name
    title: Text
    task: Task
    files: Annotated[tuple[DataFile, ...], Field(min_length=1)]
    reader: Literal["whitespace", "csv"]
    skip_lines: Annotated[int, Field(ge=0)] = 0
    rows: PositiveInt
    columns: tuple[Text, ...]
    features: Annotated[tuple[Text, ...], Field(min_length=1)]
    target: Text
    labels: dict[str, int] | None = None
    upstream: Text
    licence: Text
    citation: Text
    defects: tuple[Text, ...] = ()
    fingerprint: Fingerprint

    @model_validator(mode="before")
    @classmethod
    def _features_default_to_all_but_the_target(cls, data: Any) -> Any:
        if isinstance(data, dict) and "features" not in data:
            rest = [column for column in data.get("columns", ()) if column != data.get("target")]
            return {**data, "features": rest}
        return data

    @model_validator(mode="after")
    def _columns_agree(self) -> DatasetEntry:
        for group in (self.columns, self.features):
            if len(set(group)) < len(group):
                raise ValueError("a column is named twice")
        if unknown := {*self.features, self.target} - set(self.columns):
            raise ValueError(f"not among the columns: {sorted(unknown)}")
        if self.target in self.features:
            raise ValueError(f"the target {self.target!r} is among the features")
        return self

    @model_validator(mode="after")
    def _labels_fit_the_task(self) -> DatasetEntry:
        numbers = sorted((self.labels or {}).values())
        if (self.task == "regression") != (self.labels is None):
            raise ValueError("labels belong to classification, and to it only")
        if numbers != list(range(len(numbers))) or (
            self.task == "classification" and len(numbers) != 2
        ):
            raise ValueError("labels must be numbered 0, 1, ... once each; two for classification")
        return self

    @property
    def class_labels(self) -> tuple[str, ...] | None:
        """The labels as written, class 0 first; None for regression."""
        return (
            None if self.labels is None else tuple(sorted(self.labels, key=self.labels.__getitem__))
        )
