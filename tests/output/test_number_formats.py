"""Numbers with units have three digits, also where rounding leads to the next unit."""

from __future__ import annotations

import pytest

from svgpbench.output.number_formats import in_bytes, milliseconds, scaled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (scaled(0.0), "0"),
        (scaled(0.25), "0.25"),
        (scaled(999.4), "999"),
        (scaled(999.6), "1 k"),
        (scaled(1234.0), "1.23 k"),
        (scaled(1.2345e9), "1.23 G"),
        (scaled(float("nan")), "–"),
        (milliseconds(0.0123456), "12.3"),
        (milliseconds(0.9996), "1000"),
        (milliseconds(12.3456), "12346"),
        (in_bytes(999.0), "999 B"),
        (in_bytes(999_600.0), "1 MB"),
        (in_bytes(999.6e9), "1 TB"),
    ],
)
def test_three_digits_and_a_unit(text: str, expected: str) -> None:
    assert text == expected
