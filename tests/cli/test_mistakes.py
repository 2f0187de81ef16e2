"""Every mistake of a user's: one line that names it and what to do, exit code 2, nothing written."""

from __future__ import annotations

from glob import glob
from pathlib import Path

import pytest
from command_line import Cli
from own_experiment import write_own, write_rows

from svgpbench.api import fit
from svgpbench.errors import UserError
from svgpbench.results.store import check_writable

FIG3 = "adam2021-fig3"


def refused(cli: Cli, *arguments: str | Path) -> str:
    before = sorted(Path.cwd().rglob("*"))
    outcome = cli(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert sorted(Path.cwd().rglob("*")) == before
    return outcome.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "adam2021-fig4"), "unknown experiment 'adam2021-fig4'; did you mean"),
        (("run", FIG3, "--backend", "jaxx"), "unknown backend 'jaxx'; did you mean 'jax'?"),
        (("run", FIG3, "--method", "t-svpg"), "'t-svpg'; did you mean 't-svgp'?"),
        (("run", FIG3, "--dataset", "airfoyl"), "'airfoyl'; did you mean 'airfoil'?"),
        (("run", FIG3, "--preset", "papper"), "'papper'; did you mean 'paper'?"),
        (("run", FIG3, "--dtype", "float16"), "'float16' is not one of 'float64', 'float32'"),
        (("run", FIG3, "--backend", "numpy", "--dtype", "float32"), "no dtype 'float32'"),
        (("run", FIG3, "--backend", "numpy", "--jobs", "999"), "this machine has"),
        (("run", FIG3, "--backend", "numpy", "--jobs", "0"), "at least 1"),
        (("run", FIG3, "--backend", "numpy", "--timeout", "-1"), "above 0"),
        (("run", FIG3, "--backend", "numpy", "--memory", "0"), "--memory 0: give a number of GiB"),
        (
            ("run", FIG3, "--backend", "numpy", "--checkpoint", "-1"),
            "--checkpoint -1: give a number",
        ),
        (("verify", "adam2021-fig4"), "did you mean 'adam2021-fig3'"),
        (("verify", "--results", "nowhere"), "--results nowhere: there is no such folder"),
        (("verify", FIG3, "--sample", "0"), "--sample"),
        (("run", FIG3, "--seed", "-1"), "--seed"),
        (("run",), "Missing argument 'EXPERIMENT'"),
        (("run", "there-is-no.toml"), "there-is-no.toml cannot be read: No such file"),
        (("rum",), "'rum'. Did you mean 'run'? (see `svgpbench --help`)"),
        (("table", FIG3, "--nope"), "No such option: --nope (see `svgpbench table --help`)"),
        (("collect", "runs", "--out", "nowhere/a.csv"), "--out nowhere/a.csv: there is no folder"),
        (("collect", "runs", "--out", "a.csv", "--into", "b"), "give one of them at a time"),
        (("advise", "pima", "--likelihood", "gaussian"), "not of classification, which takes"),
        (("list", "method"), "'method'"),
        (("table", FIG3), f"no records of {FIG3} in runs"),
        (("table", FIG3, "--json", "--csv"), "exclude each other"),
        (("plot", FIG3, "--out", "figure.doc"), ".png, .pdf, .svg"),
        (("plot", FIG3, "--out", "nowhere/figure.png"), "no folder nowhere"),
        (("check", "--backend", "torhc"), "unknown backend 'torhc'; did you mean 'torch'?"),
        (("run", FIG3, "--backend", "cupy"), "unknown backend 'cupy' (known: "),
        (
            ("run", FIG3, "--backend", "jax:fast"),
            "'jax' offers no mode 'fast' (it has: jit, eager)",
        ),
        (("run", "my.csv"), "my.csv is a table, not an experiment: write an experiment file"),
        (("table", "some/my.parquet"), "some/my.parquet is a table, not an experiment"),
        (("reproduce",), "which papers, artefacts or claims? all papers are adam2021, "),
        (("claims", "--results", "nosuch"), "--results nosuch: there is no such folder"),
        (("claims", "adam2021-16", "--results", "nosuch"), "nosuch: there is no such folder"),
        (("claims", "adam20211"), "unknown claim 'adam20211'"),
        (("report", "--results", "nosuch"), "nosuch: there is no such folder"),
        (("report", "--results", ".", "--out", "/proc/x"), "--out /proc/x cannot be written ("),
        (("speed", "--peer", "gpflow@nosuch.whl"), "--peer gpflow@nosuch.whl: no such wheel or"),
        (("speed", "--peers", "--peer", "gpflow@no"), "--peer gpflow@no: no such wheel or source"),
        (("data", "audit", "nosuch.csv"), "no file nosuch.csv"),
        (("run", FIG3, "--results", ""), "'--results': it is empty; name a path"),
        (("claims", "--results", ""), "'--results': it is empty; name a path"),
        (("table", FIG3, "--results="), "'--results': it is empty; name a path"),
        (("report", "--out", ""), "'--out': it is empty; name a path"),
        (("reproduce", "adam2021", "--out", ""), "'--out': it is empty; name a path"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(
    cli: Cli, arguments: tuple[str, ...], words: str
) -> None:
    assert words in refused(cli, *arguments)


def test_a_missing_framework_is_refused_with_the_extra_to_install(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svgpbench.plugins.importlib.util.find_spec", lambda name: None)
    assert "pip install 'svgpbench[jax]'" in refused(cli, "run", FIG3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("em_iterations = 2", "e_rates = 0.5"),
            "unknown key 'e_rates' in [training]; did you mean 'e_rate'?",
        ),
        (
            ("em_iterations = 2", "e_rate = { start = 0.1, decai = 0.1 }"),
            "unknown key 'decai' in [training] e_rate; did you mean 'decay'?",
        ),
        (
            ("em_iterations = 2", "e_rate = { start = 0.1, decay = 0.1, steps = 40 }"),
            "unknown key 'decay' in [training] e_rate; known: end, increment, start, steps",
        ),
        (
            ("em_iterations = 2", "e_rate = { end = 0.1, steps = 40 }"),
            "missing key 'start' in [training] e_rate",
        ),
        (
            ("em_iterations = 2", "e_rate = { start = 1e-4, end = 0.1, steps = 0 }"),
            "[training] e_rate.steps must be greater than 0, got 0",
        ),
        (("em_iterations = 2", "e_rate = 'fast'"), "[training] e_rate must be a number, got"),
        (("[inducing]", "[inducin]"), "unknown key 'inducin'; did you mean 'inducing'?"),
        (("label =", "lable ="), "'lable' in [[methods]] no. 1; did you mean 'label'?"),
        (
            ('target = "y"', 'targte = "y"'),
            "'targte' in [[problems]] no. 1: data no. 1; did you mean 'target'?",
        ),
        (('name = "mine"', 'title = "mine"'), "missing key 'name'"),
        (("lengthscale = 1.0", "lengthscale = -1.0"), "[kernel] lengthscale must be greater than"),
        (("lengthscale = 1.0", "lengthscale = [1.0, -2.0]"), "lengthscale no. 2 must be greater"),
        (("lengthscale = 1.0", "lengthscale = nan"), "[kernel] lengthscale must be"),
        (
            ("lengthscale = 1.0", "lengthscale = [1.0]"),
            "has 1 values where data set 'rows' needs 2",
        ),
        (("lengthscale = 1.0", 'name = "matern12"'), "unknown kernel 'matern12'"),
        (("m_steps = 2", 'm_steps = "2"'), "[training] m_steps must be an integer, got '2'"),
        (
            ("em_iterations = 2", 'em_iterations = "two"'),
            "em_iterations must be an integer, got 'two'",
        ),
        (('name = "mine"', 'name = "../../evil"'), "name must be of letters, digits and . _ -, a"),
        (
            ("[kernel]", "[kernel]\nadr = false"),
            "unknown key 'adr' in [kernel]; did you mean 'ard'?",
        ),
        (("m_steps = 2", "m_steps = -2"), "[training] m_steps must be greater than or equal to 0"),
        (
            ("folds = 4", 'kind = "k_fold"'),
            "[split] kind must be 'k-fold', 'random', 'fixed', 'groups', 'blocks' or 'column'",
        ),
        (("run_folds = [0, 1]", "run_folds = [4]"), "fold 4 of 4"),
        (("run_folds = [0, 1]", 'kind = "column"'), "kind = 'column' needs run_folds"),
        (("count = 5", "count = 31"), "inducing.count = 31 is more than the 30 training rows"),
        (("m_steps = 2", "batch_size = 31"), "training.batch_size = 31 is more than the 30"),
        (('"numpy"', '"nunpy"'), "unknown backend 'nunpy'; did you mean 'numpy'?"),
        (('name = "t-svgp"', 'name = "t-svpg"'), "unknown method 't-svpg'; did you mean"),
        (
            ('name = "t-svgp"', 'name = "t-svgp"\noptions = { tieing = "tied" }'),
            "unknown option of method t-svgp 'tieing'; did you mean 'tying'?",
        ),
        (('{ name = "gaussian" }', '{ name = "gausian" }'), "unknown likelihood 'gausian'"),
        (('{ name = "gaussian" }', '{ name = "bernoulli-probit" }'), "is for classification"),
        (
            ('{ name = "gaussian" }', '{ name = "bernoulli-probit", noise_variance = 1.0 }'),
            "'noise_variance' in [[problems]] no. 1: likelihood; known: ",
        ),
        (
            ('{ name = "gaussian" }', '{ name = "student-t", scael = 3 }'),
            "unknown key 'scael' in [[problems]] no. 1: likelihood; did you mean 'scale'?",
        ),
        (
            ('{ name = "gaussian" }', '{ name = "student-t", scale = "1" }'),
            "no. 1: likelihood: option 'scale' of likelihood 'student-t' must be a number, got '1'",
        ),
        (
            ('{ name = "gaussian" }', '{ name = "student-t", df = 1.0 }'),
            "option 'df' of likelihood 'student-t' must be greater than 1, got 1.0",
        ),
        (("[inducing]", "[inducing]\ncuont = 4"), "'cuont' in [inducing]; did you mean 'count'?"),
        (("[inducing]", '[inducing]\ninit = "kmeans"'), "did you mean 'k-means'?"),
        (
            ("[kernel]", "[kernel]\nroughness = 2.0"),
            "unknown key 'roughness' in [kernel]; known: ard,",
        ),
        (('{ name = "gaussian" }', '{ name = "poisson" }'), "takes counts 0, 1, 2, …, but row"),
        (
            ('name = "t-svgp"', 'name = "gpr"\ntraining = { batch_size = 10 }'),
            "method 'gpr' takes all data in every step; remove training.batch_size",
        ),
        (
            ("m_steps = 2", 'optimiser = "l-bfgs"\nbatch_size = 10'),
            "'l-bfgs' takes all data in every step; remove training.batch_size or use 'adam'",
        ),
        (("m_steps = 2", 'optimiser = "lbfgs"'), "optimiser must be 'adam' or 'l-bfgs'"),
        ((', task = "regression"', ""), "needs `target` and `task` too"),
        (('target = "y"', 'target = "Y"'), "no column 'Y' for the target"),
        (
            ("[{ name", '[{ name = "boston", target = "RAD" }, { name'),
            "data 'boston' has no path, so its registry says what `target` is: leave it out",
        ),
        (("[{ name", '["sarcos@torque8", { name'), "no output 'torque8'; did you mean 'torque7'?"),
        (("[{ name", '["bostn", { name'), "unknown data set 'bostn'; did you mean 'boston'?"),
        (("[kernel]", "[kernel"), "is not well-formed TOML"),
    ],
)
def test_a_mistake_in_an_experiment_file_is_one_line_that_names_the_file(
    cli: Cli, tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    write_own(tmp_path, change)
    line = refused(cli, "run", "mine.toml")
    assert line.startswith("error: mine.toml")
    assert words in line


def test_a_method_that_refuses_a_likelihood_is_one_line(cli: Cli, tmp_path: Path) -> None:
    write_own(
        tmp_path,
        ('{ name = "gaussian" }', '{ name = "bernoulli-probit" }'),
        ('name = "t-svgp"', 'name = "gpr"'),
    )
    line = refused(cli, "run", "mine.toml")
    assert "method 'gpr' cannot take likelihood 'bernoulli-probit': it has Gaussian noise" in line


@pytest.mark.parametrize(
    ("replace", "words"),
    [
        ((7, "0.1,abc,0.2"), "rows.csv: line 7, column 2 ('z') holds 'abc', not a number"),
        ((7, "0.1,nan,0.2"), "rows.csv: line 7, column 2 ('z') holds 'nan', a missing value"),
        ((7, "0.1,0.2,"), "rows.csv: line 7, column 3 ('y') is empty"),
        ((7, "0.1,0.2"), "rows.csv: line 7 has 2 cells where 3 columns are expected"),
    ],
)
def test_a_mistake_in_a_table_is_one_line_with_its_place(
    cli: Cli, tmp_path: Path, replace: tuple[int, str], words: str
) -> None:
    write_own(tmp_path)
    write_rows(tmp_path, replace)
    assert words in refused(cli, "run", "mine.toml")


def test_two_problems_with_one_table_are_told_to_name_them(cli: Cli, tmp_path: Path) -> None:
    path = write_own(tmp_path)
    again = path.read_text().split("[[problems]]")[1].split("[[methods]]")[0]
    path.write_text(path.read_text() + f"\n[[problems]]{again}")
    line = refused(cli, "run", "mine.toml")
    assert "data set 'rows' is there 2 times; give the data of each problem its own name" in line


def test_a_file_is_no_folder_of_records(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "records").write_text("")
    for command in (["claims"], ["claims", "adam2021-16"], ["report"]):
        line = refused(cli, *command, "--results", "records")
        assert "--results records is a file; name a folder with records" in line


def test_an_experiment_is_no_plan(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path)
    for command in ("learn", "survive"):
        line = refused(cli, command, "--plan", "mine.toml")
        assert "mine.toml is an experiment, not a plan; run it with `svgpbench run" in line


def test_names_with_commas_are_quoted_where_names_are_listed(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path, ('label = "t-SVGP"', 'label = "mean field, natgrad"'))
    line = refused(cli, "run", "mine.toml", "--method", "zzz")
    assert "(known: 'mean field, natgrad', t-svgp)" in line


@pytest.mark.skipif(bool(glob("/dev/nvidia[0-9]*")), reason="has an accelerator")
@pytest.mark.parametrize("backend", ["jax", "torch", "tensorflow"])
def test_a_device_that_is_not_there_is_refused_before_workers_start(
    cli: Cli, tmp_path: Path, backend: str
) -> None:
    pytest.importorskip(backend)
    write_own(tmp_path)
    line = refused(cli, "run", "mine.toml", "--backend", backend, "--device", "cuda")
    assert line == f"error: backend '{backend}' has no device 'cuda' here; see `svgpbench doctor`\n"
    with pytest.raises(UserError, match=f"^backend '{backend}' has no device 'cuda' here"):
        fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0], inducing=2, backend=backend, device="cuda")


def test_the_reference_has_no_other_device(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path)
    line = refused(cli, "run", "mine.toml", "--device", "cuda")
    assert "backend 'numpy' offers no device 'cuda' (it has: cpu)" in line


def test_an_empty_table_is_refused(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path)
    (tmp_path / "rows.csv").write_text("")
    assert "rows.csv is empty" in refused(cli, "run", "mine.toml")


def test_a_results_folder_that_cannot_be_written_is_refused(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path)
    line = refused(cli, "run", "mine.toml", "--results", "rows.csv/runs")
    assert "--results rows.csv/runs cannot be written" in line


def test_a_file_in_place_of_a_folder_of_records_is_named(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path)
    (tmp_path / "records").write_text("")
    assert "records is a file; name a folder" in refused(cli, "table", FIG3, "--results", "records")
    with pytest.raises(UserError, match="cannot write into records: it is a file; name a folder"):
        check_writable(Path("records"))
