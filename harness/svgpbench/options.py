"""Options of a plugin: the fields of its dataclass, with their types and defaults."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from svgpbench.errors import UserError, must_be, unknown

T = TypeVar("T")


def with_options(cls: type[T], what: str, given: Mapping[str, Any], taken: Iterable[str] = ()) -> T:
    """Build an instance with the given options; the others have their defaults.

    Args:
        cls: a dataclass; an annotation such as `Annotated[int, Field(ge=2)]` bounds a field.
        what: name of the instance in messages, such as `likelihood 'student-t'`.
        given: values as in JSON: no number in quotes, and a list for a tuple.
        taken: keys of the table that holds the options; no option may have such a name.

    Raises:
        UserError: for an unknown option, a missing option without a default, an option in `taken`, or a
            wrong value.
    """
    forms = _forms(cls)  # type: ignore[arg-type]  # a class is hashable
    if both := sorted(forms.keys() & set(taken)):
        raise UserError(f"{what} has an option {both[0]!r}, which is a key of its table: rename it")
    for key in given:
        if key not in forms:
            raise unknown(f"option of {what}:", key, forms or {*taken} - {"name", "parts"})
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        without = field.default is field.default_factory is dataclasses.MISSING
        if without and field.name in forms and field.name not in given:
            raise UserError(f"{what} needs the option {field.name!r}")
    read = {key: _read(what, key, forms[key], value) for key, value in given.items()}
    try:
        return cls(**read)
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"{what}: {error}") from error


def options_of(built: Any) -> dict[str, Any]:
    """Return every option of an instance as a JSON value."""
    forms = _forms(type(built))  # type: ignore[arg-type]
    return {key: form.dump_python(getattr(built, key), mode="json") for key, form in forms.items()}


def option_names(cls: type) -> tuple[str, ...]:
    """Return the names of the options of a dataclass."""
    return tuple(field.name for field in dataclasses.fields(cls) if field.init)


@functools.cache
def _forms(cls: type) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(cls, include_extras=True)
    strict = ConfigDict(strict=True, allow_inf_nan=False)
    return {name: TypeAdapter(hints[name], config=strict) for name in option_names(cls)}


def check_option(cls: type, what: str, key: str, value: Any) -> None:
    """Raise `UserError` if a value is not valid for an option of the class."""
    _read(what, key, _forms(cls)[key], value)


def _read(what: str, key: str, form: TypeAdapter[Any], value: Any) -> Any:
    try:
        # by way of JSON: from a Python list, strict Pydantic would not make a tuple
        return form.validate_json(json.dumps(value))
    except ValidationError as error:
        message = must_be(error.errors()[0]["msg"])
        raise UserError(f"option {key!r} of {what} {message}, got {value!r}") from None
