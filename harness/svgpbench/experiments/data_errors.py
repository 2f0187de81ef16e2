"""Conversion of `DataError` to `UserError`, which is shown as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from svgpbench.errors import UserError
from svgpbench_datasets import DataError


@contextmanager
def data_errors_are_the_users() -> Iterator[None]:
    """Raise `UserError` with the same message for a `DataError` raised inside the context."""
    try:
        yield
    except DataError as error:
        raise UserError(str(error)) from error
