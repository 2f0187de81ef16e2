"""`svgpbench learn` on a tiny plan, and its tables from records made by hand."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from racing import FAKE, run_of, tiny_plan
from rich.console import Console

from svgpbench.benchmarks.records import append
from svgpbench.benchmarks.time_to_target import profile, tables, training
from svgpbench.benchmarks.time_to_target.comparison import (
    ChosenRates,
    ContestantRuns,
    compare_contestants,
)
from svgpbench.benchmarks.time_to_target.curves import draw_learning
from svgpbench.benchmarks.time_to_target.plan import (
    Contestant,
    Run,
    read_learning_plan,
    shipped_plans,
)
from svgpbench.benchmarks.time_to_target.records import (
    Evaluation,
    TrainingRecord,
    least_disturbed,
    read_training,
)
from svgpbench.benchmarks.timing.problems import shape_of
from svgpbench.cli.application import exit_code
from svgpbench.cli.learn import _contestants
from svgpbench.config import RatePair
from svgpbench.environment import OURS

PLAN = """
seeds = [0, 1]
backends = ["numpy"]
methods = ["t-svgp"]
checked_rows = 50
test_rows = 40
first_look_s = 1e6
iterations = 3

[problems.tiny]
data = { name = "airfoil" }
likelihood = { name = "gaussian", noise_variance = 0.1 }
batch_size = 16
inducing = 7
e_rates = [0.1]
m_rates = [0.01]
search_s = 1e6
seconds = 1e7
targets = [100.0, -100.0]
"""

Learn = Callable[..., tuple[int, str, str]]


@pytest.fixture
def learn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Learn:
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        where = ("--plan", str(tmp_path / "plan.toml"), "--results", str(tmp_path / "records"))
        busy = ("--max-other-cores", "99")  # other tests run beside
        code = exit_code(["learn", "--threads", "1", *busy, *where, *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_a_comparison_is_run_recorded_resumed_and_shown_again(
    learn: Learn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = tmp_path / "curves.png"
    code, out, err = learn("--library", OURS, "--figure", str(picture))
    assert code == 0, err
    assert picture.stat().st_size > 1000
    path = tmp_path / "records" / f"{OURS}.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    kept = [json.loads(line) for line in lines]
    assert [(x["method"], x["search"], x["seed"]) for x in kept] == [
        ("t-svgp", True, 0),
        ("t-svgp", False, 0),
        ("t-svgp", False, 1),
    ]
    assert all(x["looks"][-1][1] == 3 and "numpy" in x["versions"] for x in kept)
    # the first target is reached at the first look, the second never
    assert "> 1e+07" in out and "t-svgp" in out

    path.write_text("".join(lines[:-1]) + lines[-1][:60])  # killed in the middle of its last line
    again: list[Run] = []
    real = training.PlanTrainer.run

    def seen(self: training.PlanTrainer, run: Run) -> TrainingRecord:
        again.append(run)
        return real(self, run)

    monkeypatch.setattr(training.PlanTrainer, "run", seen)
    assert learn("--library", OURS)[0] == 0
    assert [(run.contestant.method, run.seed) for run in again] == [("t-svgp", 1)]
    shown = learn("--from-records")
    assert shown[0] == 0 and "t-svgp" in shown[1] and len(again) == 1
    assert "after 1e+07 s of training, threads: 1" in shown[1]
    code, out, err = learn("--library", OURS, "--threads", "2")
    # one line on the run that was killed while it was written, and one on what is wrong
    assert (code, out, err.count("\n")) == (2, "", 2) and len(again) == 1
    assert "svgpbench.jsonl: 1 damaged" in err
    assert (
        "has runs of this plan made with --threads 1, not 2; give --threads 1, or another --results"
        in err
    )
    # another plan has records of its own
    (tmp_path / "plan.toml").write_text(PLAN.replace("batch_size = 16", "batch_size = 8"))
    assert learn("--from-records")[0] == 2


def test_runs_on_other_content_of_a_users_file_are_other_runs(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    data = {"name": "mine", "path": str(file), "target": "y", "task": "regression"}
    plan, digests = tiny_plan(data=data), []
    for y in (1.0, 2.0):
        file.write_text("x,y\n" + "".join(f"{x},{y * x**2}\n" for x in range(60)))
        digests.append(plan.digest("tiny"))
    assert digests[0] != digests[1]


def test_a_disturbed_run_is_made_again_and_the_least_disturbed_counts(
    learn: Learn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the search; two tries of seed 0, three of seed 1
    losses = iter([0.0, 0.3, 0.05, 0.5, 0.4, 0.6])
    real = training.PlanTrainer.run

    def disturbed(self: training.PlanTrainer, run: Run) -> TrainingRecord:
        return real(self, run).model_copy(update={"other_cores": next(losses)})

    monkeypatch.setattr(training.PlanTrainer, "run", disturbed)
    code, out, err = learn("--library", OURS, "--max-other-cores", "0.1")
    assert code == 0 and next(losses, None) is None
    kept = read_training(tmp_path / "records")
    assert sorted(x.other_cores for x in kept.values()) == [0.0, 0.05, 0.4]
    assert "others took 0.30 cores" in err.replace("\n", " ")
    assert "other processes took 0.40 cores" in out
    assert learn("--library", OURS, "--max-other-cores", "0.5")[0] == 0  # nothing left to run


def test_a_try_that_failed_before_it_was_metered_does_not_count_for_one_that_trained() -> None:
    trained = record(MINE, (5.0, 1.0), other_cores=0.3)
    killed = record(MINE, status="error", message="the process was killed by SIGKILL")
    calm = record(MINE, (5.0, 1.0), other_cores=0.1)
    assert least_disturbed(trained, killed) == least_disturbed(killed, trained) == trained
    assert least_disturbed(trained, calm) == least_disturbed(calm, trained) == calm
    assert least_disturbed(None, killed) == killed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--library", "gpfow"), "unknown library 'gpfow'; did you mean 'gpflow'?"),
        (("--problem", "tidy"), "unknown problem of the plan 'tidy'"),
        (("--library", OURS, "--backend", "nunpy"), "unknown backend 'nunpy'"),
        (("--figure", "curves.txt"), "name a file ending in .png"),
        (("--from-records",), "no record of these runs"),
        (("--plan", "adam2021-fig5"), "cannot read the plan adam2021-fig5"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    learn: Learn, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = learn(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('peer_methods = { gpflow = ["natgrd"] }', "unknown method of gpflow 'natgrd'"),
        ('peer_methods = { gpfow = ["natgrad"] }', "unknown peer of peer_methods"),
        ('methods = ["orth natgrd"]', "unknown variant of method orth 'natgrd'"),
        ('curves = ["rmse"]', "curves"),
    ],
)
def test_a_plan_names_methods_and_curves_that_there_are(
    learn: Learn, tmp_path: Path, line: str, said: str
) -> None:
    others = "\n".join(x for x in PLAN.splitlines() if not x.startswith(line.split(maxsplit=1)[0]))
    (tmp_path / "plan.toml").write_text(f"{line}\n{others}")
    code, out, err = learn("--from-records")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_shipped_plans_are_those_of_papers_and_train_what_they_say() -> None:
    plans = {name: read_learning_plan(Path(name)) for name in shipped_plans()}
    assert set(plans) == {"adam2021-fig4", "salimbeni2018-fig2c"}
    fig4, fig2c = plans.values()
    (mnist,) = fig4.problems.values()
    assert (mnist.inducing, mnist.batch_size, mnist.e_steps, fig4.iterations) == (100, 200, 1, 150)
    assert mnist.grid == [RatePair(0.03, 0.02)] and mnist.first_rows
    contestants = [x.title for x in _contestants(fig4, [OURS, "gpflow"])]
    assert contestants == ["t-svgp", "q-svgp", "gpflow natgrad", "gpflow natgrad retraced"]
    (roads,) = fig2c.problems.values()
    assert (roads.two_bases, roads.inducing) == ((700, 300), 400)
    # a fifth of the printed sizes
    assert shape_of("roads-M2000").two_bases == (3500, 1500)
    # the other plan leaves out what only the figure needs
    assert [x.title for x in _contestants(read_learning_plan(), ["gpflow"])] == ["gpflow natgrad"]


def test_the_profile_counts_tasks_within_a_factor_of_the_fastest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # seed 0: f_0 = 2, f_L = 1, so the tasks are to reach 1.1 and 1.01; seed 1: the peer wins both
    mine = (
        record(MINE, (0.0, 2.0), (4.0, 1.09), (10.0, 1.0)),
        record(MINE, (0.0, 2.0), (18.0, 1.0), seed=1),
    )
    theirs = (
        record(PEER, (0.0, 2.0), (6.0, 1.09), (20.0, 1.02)),
        record(PEER, (0.0, 2.0), (6.0, 0.5), seed=1),
    )
    alone = record(MINE, (0.0, 3.0), (5.0, 1.0))  # on a problem that the peer cannot train on
    entries = {
        "tiny": [entry(MINE, *mine), entry(PEER, *theirs)],
        "other": [entry(MINE, alone), entry(PEER)],
    }
    never = math.inf
    assert profile.factors_of(entries) == {
        MINE.title: [1.0, 1.0, never, never, 1.0, 1.0],
        PEER.title: [1.5, never, 1.0, 1.0],
    }
    rows = [[str(x) for x in row] for row in profile.profile_table(entries).rows]
    assert rows == [
        [MINE.title, "67 %", "67 %", "67 %", "67 %", "4 of 6"],
        [PEER.title, "50 %", "75 %", "75 %", "75 %", "3 of 4"],
    ]
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *rest, **more: drawn.append(figure))
    profile.draw_profile(entries, tmp_path / "profile.png")
    (panel,) = drawn[0].axes
    assert list(panel.lines[1].get_xdata()) == [1.0, 1.0, 1.0, 1.5, 1.05 * 1.5]
    assert list(panel.lines[1].get_ydata()) == [0.5, 0.5, 0.5, 0.75, 0.75]


def test_a_problem_on_which_nothing_was_gained_has_no_task(tmp_path: Path) -> None:
    worse = record(MINE, (0.0, 1.0), (5.0, 1.5))
    assert profile.targets_of([worse]) == []
    assert profile.targets_of([record(MINE, status="error")]) == []
    died = record(PEER, (0.0, 2.0), status="error", message="NaN")
    gained = record(MINE, (0.0, 2.0), (5.0, 0.0))
    assert profile.targets_of([died, gained]) == pytest.approx([0.2, 0.02])
    # starts that differ by rounding are no gain
    rounded = record(PEER, (0.0, 1.0 - 1e-15), (5.0, 1.2))
    entries = {"tiny": [entry(MINE, worse), entry(PEER, rounded)]}
    assert profile.factors_of(entries) == {}
    assert list(profile.profile_table(entries).rows) == []
    profile.draw_profile(entries, tmp_path / "profile.png")
    assert (tmp_path / "profile.png").stat().st_size > 1000


def test_a_figure_has_a_row_for_each_curve_and_what_diverges_spoils_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *rest, **more: drawn.append(figure))
    plan = tiny_plan().model_copy(update={"curves": ("elbo", "nlpd")})
    looks = (
        Evaluation(0.0, 0, -900.0, 2.0),
        Evaluation(5.0, 500, -300.0, 1.4),
        Evaluation(20.0, 2000, -100.0, 0.9),
    )
    worse = (Evaluation(5.0, 500, -1e9, 50.0),)
    lived, died = record(MINE, looks=looks), record(OTHER, status="error", looks=worse)
    entries = {"tiny": [entry(MINE, lived), entry(OTHER, died)]}
    draw_learning(plan, entries, tmp_path / "curves.png")
    ((elbo, nlpd),) = [figure.axes for figure in drawn]
    assert (elbo.get_ylabel(), nlpd.get_ylabel()) == ("ELBO", "test NLPD")
    assert list(elbo.lines[0].get_xdata()) == [5.0, 20.0]  # the axis is logarithmic: no start
    assert list(elbo.lines[0].get_ydata()) == [-300.0, -100.0]
    assert list(nlpd.lines[0].get_ydata()) == [1.4, 0.9]
    assert elbo.get_ylim() == (-300.0, -90.0)
    assert nlpd.get_ylim() == pytest.approx((0.87, 2.1))  # 50 lies above three times the room
    assert (elbo.get_xlabel(), nlpd.get_xlabel()) == ("", "seconds of training")
    draw_learning(plan, {"tiny": [entry(MINE, lived)]}, tmp_path / "curves.png")
    assert drawn[1].axes[1].get_ylim() == pytest.approx(
        (0.87, 1.43)
    )  # the start, 2.0, is not drawn


@pytest.mark.filterwarnings("error")
def test_a_curve_of_one_evaluation_is_drawn_without_a_warning(tmp_path: Path) -> None:
    plan = tiny_plan().model_copy(update={"curves": ("elbo",)})
    draw_learning(plan, {"tiny": [entry(MINE, record(MINE, (5.0, 1.0)))]}, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


PEER, OTHER, MINE = Contestant("gpflow", "natgrad"), FAKE, Contestant(OURS, "t-svgp")
BEST = RatePair(0.3, 0.01)


def record(contestant: Contestant, *at: tuple[float, float], **changes: Any) -> TrainingRecord:
    """A run of 20 s that was at an NLPD at some seconds, a hundred iterations each."""
    looks = tuple(Evaluation(s, int(100 * s), -1000.0, nlpd) for s, nlpd in at)
    run = run_of(tiny_plan(), contestant, seed=changes.pop("seed", 0))
    return TrainingRecord(**{"run": run, "status": "ok", "looks": looks} | changes)


def entry(contestant: Contestant, *trained: TrainingRecord) -> ContestantRuns:
    return ContestantRuns(contestant, (record(contestant),), ChosenRates("graph", BEST), trained)


def test_a_run_that_does_not_get_there_is_later_than_any_that_does() -> None:
    there, late = record(MINE, (5.0, 1.0), (20.0, 0.9)), record(MINE, (5.0, 2.0), (20.0, 1.3))
    died = record(MINE, (5.0, 2.0), status="error", message="NaN")
    of_all = entry(MINE, there, late, died)
    assert tables.seconds_to(of_all, 1.2) == [
        5.0,
        tables.NOT_REACHED,
        tables.NOT_REACHED,
    ]
    assert tables.median(tables.seconds_to(of_all, 1.2)) == tables.NOT_REACHED
    assert tables.iterations_to(of_all, 0.9)[0] == 2000
    two = entry(MINE, there, late, record(MINE, (10.0, 1.2)))
    assert tables.median(tables.seconds_to(two, 1.2)) == 10.0


def shown(*entries: ContestantRuns) -> list[str]:
    """What the tables of targets and of ends say of each contestant."""
    settings = tiny_plan(targets=(1.2,)).problems["tiny"]
    page = Console(file=io.StringIO(), width=200)
    for table in (tables.target_table, tables.end_table):
        page.print(table("tiny", settings, entries))
    assert isinstance(page.file, io.StringIO)
    lines = page.file.getvalue().splitlines()
    return ["".join(x for x in lines if each.contestant.title in x) for each in entries]


def test_the_table_shows_seconds_with_their_spread_and_the_fastest_peer_over_each() -> None:
    mine = entry(MINE, *(record(MINE, (s, 1.0), (20.0, 0.8)) for s in (4.0, 5.0, 8.0)))
    theirs = entry(PEER, *(record(PEER, (s, 1.1), (20.0, 1.0)) for s in (10.0, 12.0, 11.0)))
    never = entry(OTHER, *(record(OTHER, (20.0, 2.0)) for _ in range(3)))
    ours, peer, last = shown(mine, theirs, never)
    assert "5 (4–8)" in ours and " 500 " in ours and "2.20" in ours and "0.8000" in ours
    assert "11 (10–12)" in peer and "1.00" in peer and "10" in peer
    assert "> 20 (> 20–> 20)" in last and "3 of 3" in last
    # a contestant that never gets there stays in the table, with a bound of its ratio
    cut = entry(MINE, *(record(MINE, (20.0, 2.0)) for _ in range(3)))
    assert "< 0.55" in shown(cut, theirs)[0]
    died = entry(MINE, record(MINE, (4.0, 1.3), status="error"), *mine.trained[:2])
    row = shown(died, theirs)[0]
    assert "5 (4–> 20)" in row and "2 of 3" in row
    best = shown(mine, entry(PEER, record(PEER, (20.0, 2.0))))[0]
    assert "> 4.00" in best


def test_ratios_are_bounds_where_a_run_is_cut_off() -> None:
    never = tables.NOT_REACHED
    assert tables.ratio(10.0, 5.0, 20.0) == "2.00"
    assert tables.ratio(never, 5.0, 20.0) == "> 4.00"
    assert tables.ratio(10.0, never, 20.0) == "< 0.50"
    assert tables.ratio(never, never, 20.0) == "–"


def test_the_search_and_what_went_wrong_are_told() -> None:
    plan = tiny_plan()
    runs = [
        run_of(plan, PEER, search=True, mode="graph", rates=r) for r in plan.problems["tiny"].grid
    ]
    found = [
        TrainingRecord(
            run=runs[0], status="ok", mode="graph", looks=(Evaluation(5.0, 9, -700.0, None),)
        ),
        TrainingRecord(
            run=runs[1], status="error", message="InvalidArgumentError: NaN", mode="graph"
        ),
    ]
    chosen = ChosenRates("graph", RatePair(0.1, 0.01))
    lost = record(PEER, (20.0, 1.0), other_cores=0.7)
    entries = [
        ContestantRuns(PEER, tuple(found), chosen, (lost,)),
        ContestantRuns(MINE, (record(MINE, status="skipped", message="no several latents"),), None),
        ContestantRuns(OTHER, (record(OTHER, status="error", message="x"),), None),
    ]
    page = Console(file=io.StringIO(), width=200)
    page.print(tables.search_table("tiny", plan.problems["tiny"], entries))
    assert isinstance(page.file, io.StringIO)
    row = next(x for x in page.file.getvalue().splitlines() if "natgrad" in x)
    assert "*-700" in row and "failed" in row
    notes = "\n".join(tables.notes("tiny", entries))
    assert "t-svgp: refused: no several latents" in notes
    assert (
        "natgrad (graph) search: γ=0.3 Adam=0.01: failed before its first evaluation: InvalidArgumentError"
        in notes
    )
    assert "fake m: no rates of the grid came to the end" in notes
    assert "other processes took 0.70 cores" in notes


def searched(
    bounds: dict[tuple[str, float], float | str],
) -> tuple[list[ContestantRuns], list[Run]]:
    """Entries of a comparison whose runs end at a bound by (mode, γ), or die, or are refused."""
    plan = tiny_plan(backends=("torch", "jax"), e_rates=(0.1, 0.3, 1.0))
    made: list[Run] = []

    def execute(run: Run) -> TrainingRecord:
        made.append(run)
        mode = run.mode or "graph"
        bound = bounds.get((mode, run.rates.e), -9.0)
        if isinstance(bound, str):
            looked = (Evaluation(2.0, 50, 99.0, None),) if bound == "error" else ()
            facts = {"run": run, "status": bound, "message": "why", "mode": mode}
            return TrainingRecord(**facts, looks=looked)
        iterations = 200 if mode == "jax" else 100
        looked = (Evaluation(5.0, iterations, bound, None),)
        return TrainingRecord(run=run, status="ok", mode=mode, looks=looked)

    return compare_contestants(plan, "tiny", [MINE, PEER], execute), made


def test_ours_takes_the_backend_with_the_most_iterations_and_each_the_rates_of_the_best_bound() -> (
    None
):
    bounds = {
        ("jax", 0.3): -3.0,
        ("torch", 0.1): -1.0,
        ("graph", 1.0): -2.0,
        ("graph", 0.3): "error",
    }
    (mine, peer), made = searched(bounds)
    assert mine.choice == ("jax", RatePair(0.3, 0.01))  # of jax's own runs
    assert peer.choice == ("graph", RatePair(1.0, 0.01))
    asked = [(x.contestant.library, x.mode, x.rates.e) for x in made if x.search]
    ours = [("torch", 0.1), ("jax", 0.1), ("jax", 0.3), ("jax", 1.0)]
    assert asked[:4] == [(OURS, *x) for x in ours]
    assert asked[4:] == [("gpflow", "", 0.1), ("gpflow", "graph", 0.3), ("gpflow", "graph", 1.0)]
    # contestants are side by side within a seed
    trained = [(x.seed, x.contestant) for x in made if not x.search]
    assert trained == [(0, MINE), (0, PEER), (1, MINE), (1, PEER)]
    assert len(mine.trained) == len(peer.trained) == 2


def test_who_is_refused_or_lives_at_no_rate_is_kept_and_not_trained() -> None:
    dead: dict[tuple[str, float], float | str] = {("jax", e): "error" for e in (0.1, 0.3, 1.0)}
    dead |= {("torch", e): "error" for e in (0.1, 0.3, 1.0)}
    (mine, peer), made = searched({**dead, ("graph", 0.1): "skipped"})
    assert mine.choice is None and len(mine.search) == 4 and not mine.trained
    assert peer.refusal == "why" and len(peer.search) == 1 and not peer.trained
    assert all(run.search for run in made)


def test_rates_are_searched_on_a_backend_of_the_plan_if_no_first_run_was_ready() -> None:
    made: list[Run] = []

    def execute(run: Run) -> TrainingRecord:
        made.append(run)
        return TrainingRecord(run=run, status="error", message="the process ended")

    (mine,) = compare_contestants(tiny_plan(backends=("torch", "jax")), "tiny", [MINE], execute)
    assert [(run.mode, run.rates.e) for run in made] == [
        ("torch", 0.1),
        ("jax", 0.1),
        ("torch", 0.3),
    ]
    assert mine.choice is None


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    whole = record(PEER, (5.0, 1.0), (20.0, 0.5), mode="xla", modes={"xla": 0.1, "graph": "no"})
    searching = TrainingRecord(
        run=whole.run._replace(search=True),
        status="error",
        message="why",
        looks=(Evaluation(1.0, 2, -3.0, None),),
    )
    for each in (whole, searching):
        append(tmp_path, each)
    assert read_training(tmp_path) == {x.run: x for x in (whole, searching)}
