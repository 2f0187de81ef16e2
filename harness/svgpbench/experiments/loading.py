"""Loading of experiment files; every mistake becomes a one-line error with the file and the key."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from svgpbench.errors import UserError, unknown
from svgpbench.experiments.error_messages import one_line
from svgpbench.experiments.plugin_options import refuse_unknown_options
from svgpbench.experiments.schema import Experiment
from svgpbench.plugins import paper_folders
from svgpbench_datasets.user_table import is_table_file


def shipped_experiments() -> dict[str, Traversable]:
    """Return the experiments in the folder `experiments` of the package and of each paper, by name."""
    found: dict[str, Traversable] = {}
    for folder in (files("svgpbench"), *paper_folders().values()):
        experiments = folder / "experiments"
        for item in experiments.iterdir() if experiments.is_dir() else ():
            if item.name.endswith(".toml"):
                # another package's paper, which may be a copy of one of ours, cannot replace ours
                found.setdefault(item.name.removesuffix(".toml"), item)
    return dict(sorted(found.items(), key=lambda pair: pair[1].name))


def plugin_experiments() -> dict[str, Traversable]:
    """Return the experiments that lie beside a `paper.toml`, by the name that they declare."""
    found: dict[str, Traversable] = {}
    for paper in paper_folders().values():
        for item in paper.iterdir():
            if item.name.endswith(".toml") and item.name not in ("paper.toml", "claims.toml"):
                name = parse_toml(item.name, item.read_bytes()).get("name")
                found.setdefault(str(name), item)
    return found


def is_file_name(text: str) -> bool:
    """Return True if the text names a file: it ends in `.toml` or contains a slash or a backslash."""
    return text.endswith(".toml") or "/" in text or "\\" in text


def load_experiment(text: str) -> Experiment:
    """Load a shipped experiment by name, or an experiment from the user's file.

    Raises `UserError` for an unknown name, an unreadable file or a mistake in the file.
    """
    if is_table_file(text):
        raise UserError(
            f"{text} is a table, not an experiment: write an experiment file (.toml) with "
            f'data = [{{ name = "mine", path = "{text}", target = ..., task = ... }}] in its [[problems]]; '
            "docs/your-own-table.md has an example"
        )
    if is_file_name(text):
        path = Path(text)
        try:
            raw = path.read_bytes()
        except (OSError, ValueError) as error:  # a name that no file can have
            why = getattr(error, "strerror", None) or error
            raise UserError(f"{path} cannot be read: {why}") from None
        return _with_paths_beside(path, _parse(str(path), raw))
    known = shipped_experiments()
    if text not in known:
        # only if needed: this parses every experiment of other packages; ours keep their names
        known = plugin_experiments() | known
    if text not in known:
        hint = "; for a file of your own give its name with .toml"
        raise UserError(f"{unknown('experiment', text, known)}{hint}")
    return _parse(f"{text}.toml", known[text].read_bytes())


def parse_toml(origin: str, raw: bytes) -> dict[str, Any]:
    """Parse the content of a TOML file.

    Raises `UserError`, with `origin` at its start, if the content is not valid TOML.
    """
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise UserError(f"{origin} is not UTF-8 text; save it as UTF-8") from None
    except RecursionError:
        raise UserError(f"{origin} has tables or lists that are nested too deeply") from None
    except ValueError as error:  # includes a number with thousands of digits
        raise UserError(f"{origin} is not well-formed TOML: {error}") from None


def _parse(origin: str, raw: bytes) -> Experiment:
    declared = parse_toml(origin, raw)
    try:
        # as JSON, because strict JSON refuses "3" and true for numbers but takes a list for a tuple
        # a date, which JSON lacks, goes on as text, so that the schema refuses it by its key
        text = json.dumps(declared, default=str)
        experiment = Experiment.model_validate_json(text, strict=True)
        refuse_unknown_options(experiment)
    except ValidationError as error:
        raise UserError(f"{origin}: {one_line(error, Experiment, declared)}") from None
    except UserError as error:
        raise UserError(f"{origin}: {error}") from None
    return experiment


def _with_paths_beside(file: Path, experiment: Experiment) -> Experiment:
    """Make data paths relative to the experiment file instead of the working directory."""
    problems = [
        problem.model_copy(
            update={
                "data": tuple(
                    data.model_copy(update={"path": str(file.parent / data.path)})
                    if data.path is not None
                    else data
                    for data in problem.data
                )
            }
        )
        for problem in experiment.problems
    ]
    return experiment.model_copy(update={"problems": tuple(problems)})
