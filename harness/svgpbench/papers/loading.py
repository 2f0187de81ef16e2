"""Read a paper's folder; an error in it becomes one line with the file and the key.

A package registers its papers in the entry-point group `svgpbench.papers`, as `svgpbench_papers` does. Each
of its folders with a `paper.toml` is a paper.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar, get_args

from pydantic import ValidationError

from svgpbench.benchmarks.time_to_target.plan import read_learning_plan
from svgpbench.config import Strict
from svgpbench.errors import UserError, unknown
from svgpbench.experiments import Experiment, load_experiment
from svgpbench.experiments.error_messages import one_line
from svgpbench.experiments.loading import is_file_name, parse_toml
from svgpbench.experiments.plan import Plan
from svgpbench.experiments.resolve import counts_of_runs, shown_names
from svgpbench.papers.evidence.base import Evidence
from svgpbench.papers.evidence.computed import ComputedEvidence
from svgpbench.papers.evidence.experiment import ExperimentEvidence
from svgpbench.papers.evidence.stability import StabilityEvidence
from svgpbench.papers.evidence.timing import TimingEvidence
from svgpbench.papers.evidence.training import TrainingEvidence
from svgpbench.papers.predicates.all_predicates import AnyPredicate, Number
from svgpbench.papers.predicates.computations import ComputedPart
from svgpbench.papers.predicates.rates import Stands
from svgpbench.papers.predicates.times import Gain, OfTimes, Reaches
from svgpbench.papers.schema import Artefact, Claim, ClaimsFile, PaperFile
from svgpbench.plugins import PAPERS, load_errors, paper_folders
from svgpbench.stats.designs import Design
from svgpbench.stats.rules import MOMENT_SEPARATOR, SECONDS

F = TypeVar("F", bound=Strict)

READ: Final[Mapping[type[object], type[Evidence]]] = {
    ComputedPart: ComputedEvidence,
    OfTimes: TimingEvidence,
    Reaches: TrainingEvidence,
    Stands: StabilityEvidence,
}
"""Kind of evidence that predicates read. All others read cells of an experiment."""


class PrintedFigure(NamedTuple):
    """A number as a paper prints it.

    `value` and `spread` are a number, `<` or `>` and a number, or empty if unreadable.
    """

    artefact: str
    setting: str
    metric: str
    value: str
    spread: str


@dataclass(frozen=True)
class Paper:
    """Content of a paper's folder."""

    name: str
    about: PaperFile
    claims: tuple[Claim, ...]
    printed: tuple[PrintedFigure, ...]
    experiments: dict[str, Experiment]  # by artefact id

    def artefact(self, name: str) -> Artefact:
        """Return the artefact with the id `name`."""
        return next(artefact for artefact in self.about.artefacts if artefact.id == name)


def load_paper(name: str) -> Paper:
    """Load a paper by the name of its folder.

    Raises `UserError` if the name is unknown or the folder has an error.
    """
    folders = paper_folders()
    if name not in folders:
        raise UserError(
            "; ".join([str(unknown("paper", name, folders)), *load_errors(PAPERS).values()])
        )
    return read_paper(folders[name])


def read_paper(folder: Traversable) -> Paper:
    """Read a paper from its folder; raises `UserError` if the folder has an error."""
    about = _parsed(folder, "paper.toml", PaperFile)
    claims = _parsed(folder, "claims.toml", ClaimsFile).claims
    printed: list[PrintedFigure] = []
    experiments: dict[str, Experiment] = {}
    for artefact in about.artefacts:
        where = f"{folder.name}/paper.toml: [[artefacts]] {artefact.id!r}"
        if artefact.printed:
            if not (folder / artefact.printed).is_file():
                raise UserError(f"{where}: printed: there is no file {artefact.printed}")
            printed += _printed(folder, artefact.printed, artefact.id)
        if artefact.experiment:
            experiments[artefact.id] = _load_experiment(folder, artefact.experiment, where)
    for claim in claims:
        _check(folder.name, claim, about, experiments)
        _check_numbers(folder.name, claim, printed)
    return Paper(folder.name, about, claims, tuple(printed), experiments)


def _read(folder: Traversable, file: str) -> bytes:
    try:
        return (folder / file).read_bytes()
    except OSError as error:
        raise UserError(f"{folder.name}/{file} cannot be read: {error.strerror}") from None


def _parsed(folder: Traversable, file: str, form: type[F]) -> F:
    origin = f"{folder.name}/{file}"
    declared = parse_toml(origin, _read(folder, file))
    try:
        # through JSON: on Python objects, strict refuses lists for tuples and text for enums
        return form.model_validate_json(json.dumps(declared, default=str), strict=True)
    except ValidationError as error:
        raise UserError(f"{origin}: {one_line(error, form, declared)}") from None
    except UserError as error:
        raise UserError(f"{origin}: {error}") from None


def _printed(folder: Traversable, file: str, artefact: str) -> list[PrintedFigure]:
    origin = f"{folder.name}/{file}"
    try:
        lines = _read(folder, file).decode("utf-8-sig").splitlines()
        header, *rows = list(csv.reader(lines)) or [[]]
    except UnicodeDecodeError:
        raise UserError(f"{origin} is not UTF-8 text; save it as UTF-8") from None
    except csv.Error as error:
        raise UserError(f"{origin} is not well-formed CSV: {error}") from None
    if tuple(header) != PrintedFigure._fields:
        raise UserError(
            f"{origin}: its header is {','.join(PrintedFigure._fields)}, not {','.join(header)}"
        )
    figures = []
    for line, row in enumerate(rows, start=2):
        where = f"{origin}, line {line}"
        if len(row) != len(header):
            raise UserError(f"{where}: {len(row)} values where the header has {len(header)}")
        figure = PrintedFigure(*row)
        if figure.artefact != artefact:
            raise UserError(f"{where}: artefact {figure.artefact!r} in the file of {artefact!r}")
        for key in ("value", "spread"):
            if not re.fullmatch(NUMBER, getattr(figure, key)):
                raise UserError(f"{where}: {key} must be a number, got {getattr(figure, key)!r}")
        figures.append(figure)
    return figures


NUMBER = r"([<>]?-?\d+(\.\d+)?)?"


def _load_experiment(folder: Traversable, evidence: ExperimentEvidence, where: str) -> Experiment:
    name, preset = evidence.experiment, evidence.preset
    try:
        experiment = load_experiment(str(folder / name) if is_file_name(name) else name)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if preset and preset not in experiment.presets:
        mistake = unknown(f"preset of {experiment.name}", preset, experiment.presets)
        raise UserError(f"{where}: {mistake}")
    return experiment


def _check(paper: str, claim: Claim, about: PaperFile, experiments: dict[str, Experiment]) -> None:
    """Raise `UserError` if a claim names an artefact, method or problem that does not exist."""
    where = f"{paper}/claims.toml: claim {claim.id!r}"
    if claim.id.rpartition("-")[0] != paper:
        raise UserError(f"{where}: its id must be {paper}- and two digits")
    artefacts = {artefact.id: artefact for artefact in about.artefacts}
    for name in claim.artefacts:
        if name not in artefacts:
            raise UserError(f"{where}: {unknown('artefact', name, artefacts)}")
    for number, part in enumerate(claim.parts, start=1):
        where_part = f"{where}: part {number}"
        if part.artefact not in claim.artefacts:
            mistake = unknown("artefact of the claim", part.artefact, claim.artefacts)
            raise UserError(f"{where_part}: {mistake}")
        artefact = artefacts[part.artefact]
        _check_kind(where_part, part, artefact)
        match artefact.evidence:
            case ExperimentEvidence(experiment=runs, preset=preset):
                experiment = experiments[part.artefact]
                _check_methods(where_part, part, experiment, preset)
                design = Design(*counts_of_runs(experiment, preset))
                _check_runs(where_part, part, design, f"preset {preset!r}" if preset else runs)
            case TrainingEvidence(plan=runs):
                plan = read_learning_plan(Path(runs))
                design = Design(len(plan.problems), 1, len(plan.seeds))
                _check_runs(where_part, part, design, runs)


def _check_numbers(paper: str, claim: Claim, printed: Sequence[PrintedFigure]) -> None:
    """Raise `UserError` if a part judges another number than its artefact prints, or another ± of it."""
    for number, part in enumerate(claim.parts, start=1):
        if not isinstance(part, Number):
            continue
        own = part.artefact, part.method, part.metric
        for figure in (x for x in printed if (x.artefact, x.setting, x.metric) == own):
            for key, ours, text in (
                ("printed", part.printed, figure.value),
                ("spread", part.spread, figure.spread or "0"),
            ):
                if re.fullmatch(r"-?[\d.]+", text) and float(text) != ours:
                    raise UserError(
                        f"{paper}/claims.toml: claim {claim.id!r}: part {number}: {key} = {ours:g}, where "
                        f"the printed figures of {part.artefact!r} have {text}"
                    )


def _check_methods(
    where: str, part: AnyPredicate, experiment: Experiment, preset: str | None
) -> None:
    """Raise `UserError` unless the preset runs the methods of a part and traces its iterations."""
    names = shown_names(experiment, preset)
    for compared in part.compared:
        method, separator, moment = compared.partition(MOMENT_SEPARATOR)
        if method not in names.values():
            raise UserError(f"{where}: {unknown('method', method, names.values())}")
        if moment.endswith(SECONDS):
            traced = bool(re.fullmatch(r"\d+(\.\d+)?", moment.removesuffix(SECONDS)))
        else:
            traced = re.fullmatch(r"\d{1,18}", moment) is not None and all(
                cell.training.is_traced(int(moment))
                for cell in Plan.of(experiment, preset).configs
                if names[cell.method.title] == method
            )
        if separator and not traced:
            raise UserError(f"{where}: {compared!r}: {experiment.name} is not traced there")


def _check_runs(where: str, part: AnyPredicate, design: Design, runs: str) -> None:
    """Raise `UserError` if the runs of an artefact cannot decide a core part, whatever comes out."""
    if part.core and (lacking := part.lacks(design)):
        raise UserError(
            f"{where}: {part.predicate!r} of artefact {part.artefact!r} can decide nothing: {runs} has "
            f"{design}; give it {lacking}, or set core = false"
        )


def _check_kind(where: str, part: AnyPredicate, artefact: Artefact) -> None:
    """Raise `UserError` if a predicate cannot read its artefact's evidence."""
    evidence = artefact.evidence
    read = next((kind for of, kind in READ.items() if isinstance(part, of)), ExperimentEvidence)
    if evidence and not isinstance(evidence, read):
        (kind,) = get_args(read.model_fields["kind"].annotation)
        raise UserError(
            f"{where}: predicate {part.predicate!r} reads evidence of kind {kind!r}, and that of artefact "
            f"{part.artefact!r} is of kind {evidence.kind!r}; name another artefact or predicate"
        )
    problems = evidence.problems if isinstance(evidence, TimingEvidence) else ()
    if isinstance(part, Gain) and part.than not in problems:
        raise UserError(f"{where}: {unknown('problem of the artefact', part.than, problems)}")
