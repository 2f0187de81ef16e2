"""What came of asking a place for a file, and the error when no place had it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from svgpbench_datasets.errors import DataError


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """Why one place did not give the file; the next place is asked."""


class Absent(Refusal):
    """The place answers, and does not have the file."""


class WrongContent(Refusal):
    """The place gave something, and it is not the file."""


@dataclass(frozen=True)
class Answer:
    """A place that was asked, and why it did not give the file."""

    place: str
    why: str


class Unavailable(DataError):  # noqa: N818 - said as a user would
    """No place had the file: what was tried, what each answered, how to supply it by hand.

    Attributes:
        path: the file.
        answers: the places in the order in which they were asked.
    """

    def __init__(self, path: str, answers: Sequence[Answer], name: str | None = None) -> None:
        self.path = path
        self.answers = tuple(answers)
        tried = "; ".join(f"{answer.place}: {answer.why}" for answer in answers)
        super().__init__(
            f"{path} could not be had ({tried or 'no place is known that serves it'}); get it by "
            "other means, then run "
            f"`svgpbench fetch {name or 'NAME'} --from FILE`, or name a mirror with --mirror or "
            "SVGPBENCH_MIRROR"
        )
