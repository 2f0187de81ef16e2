"""Labels as they are given to `fit`: the classes, their numbers, and the column of labels that comes back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from svgpbench.config import Strict
from svgpbench.errors import UserError
from svgpbench.posterior.inputs import REMEDY, Floats, vector
from svgpbench_datasets.reading.cells import control_character, finite_number

Label = StrictBool | StrictInt | StrictFloat | StrictStr
MOST_SHOWN = 5


class Classes(Strict):
    """The classes of a fit: their labels, class 0 first, and the dtype of a column of labels.

    The dtype of a categorical is that of its categories, which may be more than the classes.
    """

    labels: tuple[Label, ...]
    dtype: str
    categories: tuple[Label, ...] = ()
    ordered: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.categories and not {*self.labels} <= {*self.categories}:
            raise ValueError("labels are not among the categories")
        try:
            self.column(np.arange(len(self.labels)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"labels are not of dtype {self.dtype!r}") from error
        return self

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the labels as text; those of whole numbers have no decimal point."""
        values = pd.Series(list(self.labels), dtype=self.dtype).to_numpy()
        return tuple(x if isinstance(x, str) else str(x).removesuffix(".0") for x in values)

    def column(
        self, numbers: npt.NDArray[np.integer[Any]], index: pd.Index[Any] | None = None
    ) -> pd.Series[Any]:
        """Return the labels of class numbers [t], as `fit` was given them."""
        if self.categories:
            dtype = pd.CategoricalDtype(pd.Index(self.categories, dtype=self.dtype), self.ordered)
            codes = np.array([self.categories.index(label) for label in self.labels])
            return pd.Series(pd.Categorical.from_codes(codes[numbers], dtype=dtype), index=index)
        labels = pd.Series(list(self.labels), dtype=self.dtype)
        column = labels.take(numbers)
        return column.reset_index(drop=True) if index is None else column.set_axis(index)

    def numbers(self, y: npt.ArrayLike, n: int) -> Floats:
        """Return the class numbers of labels y [n], in any spelling of the same numbers or text.

        Raises `UserError` for another shape, a missing value, and a label that `fit` was not given.
        """
        codes, distinct, _ = _factorised(y, n)
        known: dict[Hashable, int] = {}
        for index, (label, name) in enumerate(zip(self.labels, self.names, strict=True)):
            known |= {name: index, _identity(label): index}
        found = [known.get(_identity(value), known.get(str(value))) for value in distinct]
        for code, number in enumerate(found):
            if number is None:
                row, value = int(np.argmax(codes == code)), distinct[code]
                raise UserError(
                    f"y[{row}] is {_shown(value)}, which is none of {listed(self.names)}"
                )
        return np.array(found, dtype=np.float64)[codes]


def classes_of(y: npt.ArrayLike, n: int) -> tuple[Classes, Floats]:
    """Return the classes of labels y [n], and their class numbers [n].

    Classes of a categorical are in the order of its categories. Others are sorted by value if all labels are
    numbers or look like numbers, else as text.

    Raises:
        UserError: for another shape, a missing value, fewer than two classes, a label that is neither text,
            number nor truth value, or has a control character, two labels that are one number, and
            measurements.
    """
    codes, distinct, dtype = _factorised(y, n)
    identities: dict[Hashable, Any] = {}
    for value in distinct:
        other = identities.setdefault(_identity(value), value)
        if other is not value:
            raise UserError(
                f"y holds {_shown(other)} and {_shown(value)}, two spellings of one number; "
                "write it in one way"
            )
    categories: tuple[Any, ...] = ()
    numeric = not any(isinstance(identity, str) for identity in identities)
    keys: list[Any] = [*identities] if numeric else [str(value) for value in distinct]
    if isinstance(dtype, pd.CategoricalDtype):
        categories = tuple(map(_plain, dtype.categories))
        if odd := [x for x in categories if not isinstance(x, bool | int | float | str)]:
            raise UserError(
                f"y has a category {_shown(odd[0])}, which is no text, number or truth value"
            )
        keys = [categories.index(value) for value in distinct]
    order = sorted(range(len(distinct)), key=lambda i: keys[i])
    labels = tuple(distinct[i] for i in order)
    if len(labels) < 2:
        raise UserError(f"y holds {len(labels)} class, {listed(labels)}; give two or more")
    measured = any(isinstance(x, float) and not x.is_integer() for x in identities)
    if numeric and measured and 2 * len(labels) > n:
        raise UserError(
            f"y holds {len(labels)} distinct numbers in {n} rows, such as {labels[0]}: these are no "
            "labels; choose a likelihood of regression, or other targets"
        )
    ordered = bool(getattr(dtype, "ordered", False))
    of_labels = _spelled(dtype.categories.dtype if categories else dtype)
    classes = Classes(labels=labels, dtype=of_labels, categories=categories, ordered=ordered)
    if odd := [name for name in classes.names if control_character(name)]:
        raise UserError(f"y holds the label {_shown(odd[0])}, with a control character; rename it")
    if len({*classes.names}) < len(labels):
        raise UserError(f"y holds labels that read alike: {listed(classes.names)}; name them apart")
    ranks = np.empty(len(order))
    ranks[order] = np.arange(len(order))
    return classes, ranks[codes]


def _factorised(y: npt.ArrayLike, n: int) -> tuple[npt.NDArray[np.intp], list[Any], Any]:
    """Return codes [n] of labels y [n], the distinct labels in order of appearance, and the dtype of y."""
    array = vector(y, n)
    if isinstance(y, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        series: pd.Series[Any] = pd.Series(y).reset_index(drop=True)
    elif isinstance(y, list | tuple):  # NumPy would make all of a mixed list text
        series = pd.Series(list(y))
    else:
        # `pd.factorize` refuses the other byte order ("Big-endian buffer not supported")
        series = pd.Series(array.astype(array.dtype.newbyteorder("="), copy=False))
    # `pd.factorize` gives missing values the code −1, which would be read as the last label
    if (missing := np.flatnonzero(pd.isna(series))).size:
        raise UserError(f"y[{missing[0]}] is missing; {REMEDY}")
    try:
        codes, distinct = pd.factorize(series)
    except TypeError:  # not hashable
        raise UserError(
            "y holds no labels: these are text, finite numbers or truth values"
        ) from None
    labels = [_plain(value) for value in distinct]
    for code, value in enumerate(labels):
        if not isinstance(value, bool | int | float | str) or value in (np.inf, -np.inf):
            raise UserError(
                f"y[{np.argmax(codes == code)}] is {_shown(value)} ({type(value).__name__}); "
                "labels are text, finite numbers or truth values"
            )
    return codes, labels, series.dtype


def _plain(value: Any) -> Any:
    """Return a label as a value of Python."""
    # its `item` returns a longdouble again
    if isinstance(value, np.longdouble):
        return float(value)
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        return value.item()
    return str(value) if isinstance(value, str) else value


def _identity(label: Any) -> Hashable:
    """Return what two spellings of one label share: the number that it is or looks like, else the text."""
    if not isinstance(label, str):
        return int(label) if isinstance(label, bool) else label
    value = finite_number(label)
    if value is None:
        return label
    return int(label) if label.strip().lstrip("+-").isdigit() else value


def _spelled(dtype: Any) -> str:
    if isinstance(dtype, pd.StringDtype) and dtype.na_value is pd.NA:
        # its `str` is "string" for either storage, which would come back as the default one
        return f"string[{dtype.storage}]"
    return str(dtype)


def _shown(value: Any) -> str:
    return repr(value if len(str(value)) <= 40 else f"{str(value)[:37]}...")


def listed(labels: Sequence[Any]) -> str:
    """Return the first labels, for a message."""
    more = len(labels) - MOST_SHOWN
    return ", ".join(map(str, labels[:MOST_SHOWN])) + (f", ... {len(labels)} in all" * (more > 0))
