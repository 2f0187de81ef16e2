"""A mistake in data, as the kind of error that ends in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from svgpbench.errors import UserError
from svgpbench_datasets import DataError


@contextmanager
def data_errors_are_the_users() -> Iterator[None]:
    """Raise `UserError` with the same words for a `DataError` raised within."""
    try:
        yield
    except DataError as error:
        raise UserError(str(error)) from error
