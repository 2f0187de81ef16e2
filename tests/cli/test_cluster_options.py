"""`svgpbench run` on a cluster: what its options mean, and mistakes in them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import Cli
from own_experiment import write_own

pytest.importorskip("dask_jobqueue", reason="the extra `dask` is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))
from dask_cluster import dask_cluster


def test_an_own_table_runs_on_a_cluster_as_it_does_here(cli: Cli, tmp_path: Path) -> None:
    write_own(tmp_path)
    with dask_cluster(tmp_path, 2) as address:
        there = cli("run", "mine.toml", "--dask", address, "--results", "there")
    assert there.code == 0, there.err
    assert "2 cells: 2 ok" in there.out
    assert cli("run", "mine.toml", "--jobs", "1", "--results", "here").code == 0
    tables = [
        json.loads(cli("table", "mine.toml", "--json", "--results", name).out)["rows"]
        for name in ("here", "there")
    ]
    for rows in tables:
        for row in rows:
            row.pop("seconds_mean", None), row.pop("seconds_error", None)
    assert tables[0] == tables[1]
    again = cli("run", "mine.toml", "--jobs", "1", "--results", "there")
    assert "(2 from earlier runs)" in again.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dask", "tcp://127.0.0.1:1"], "--dask tcp://127.0.0.1:1: no Dask scheduler answers"),
        (["--dask", "nowhere"], "--dask nowhere: give HOST:PORT, such as 10.0.0.7:8786"),
        (["--dask", "tls://x"], "--dask tls://x: give HOST:PORT"),
        (["--dask", "nowhere://x:1"], "--dask nowhere://x:1: no Dask scheduler answers"),
        (["--dask", "a", "--slurm"], "give one of --dask, --slurm and --pbs"),
        (["--dask", "a", "--jobs", "2"], "--jobs is of this machine"),
        (["--cluster", "cores=2"], "give --slurm or --pbs with it"),
        (["--slurm", "--cluster", "cores"], "--cluster cores: give KEY=VALUE"),
        (
            ["--slurm", "--cluster", "core=2"],
            "unknown key of --cluster 'core'; did you mean 'cores'",
        ),
        (["--slurm", "--cluster", "cores=0"], "--cluster cores: Input should be greater than 0"),
        (
            ["--slurm", "--cluster", "memory=lots"],
            "--cluster memory: 'lots' is none; give such as 16GiB",
        ),
        (
            ["--slurm", "--cluster", "walltime=1h"],
            "walltime: '1h' is none; give such as 1-12:00:00",
        ),
        (["--slurm", "--cluster", "cores=1", "--cluster", "cores=2"], "cores is given twice"),
        (["--slurm", "--cluster", "interface=nope9"], "--slurm: "),
        (["--pbs", "--cluster", "gpus=1"], "--cluster gpus is for --slurm"),
        (["--job-script"], "--job-script prints the job of a queue"),
    ],
)
def test_mistakes_are_one_line(
    cli: Cli, tmp_path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svgpbench.cli.clusters.CONNECT_S", 2.0)
    write_own(tmp_path)
    script = ["--job-script"] if "--slurm" in arguments or "--pbs" in arguments else []
    outcome = cli("run", "mine.toml", *arguments, *script)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_the_job_of_slurm_asks_for_what_is_said(cli: Cli) -> None:
    given = {
        "jobs": "4",
        "cores": "8",
        "memory": "16GiB",
        "walltime": "24:00:00",
        "queue": "long",
        "account": "gp",
        "gpus": "2",
        "directive": "--exclusive",
        "prologue": "module load python",
    }
    options = [word for key, value in given.items() for word in ("--cluster", f"{key}={value}")]
    outcome = cli("run", "adam2021-fig3", "--slurm", *options, "--job-script")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    for line in (
        "#SBATCH -p long",
        "#SBATCH -A gp",
        "#SBATCH --cpus-per-task=8",
        "#SBATCH --mem=16G",
        "#SBATCH -t 24:00:00",
        "#SBATCH --gres=gpu:2",
        "#SBATCH --exclusive",
        "module load python",
    ):
        assert line in lines, line
    assert sys.executable in lines[-1]
    assert "--nthreads 8" in lines[-1]
    assert "--resources GPU=2" in lines[-1]
    assert "tcp://" in lines[-1]


def test_the_job_of_pbs_asks_for_what_is_said(cli: Cli) -> None:
    options = ["--cluster", "cores=4", "--cluster", "memory=8GiB", "--cluster", "account=gp"]
    lines = cli("run", "adam2021-fig3", "--pbs", *options, "--job-script").out.splitlines()
    assert any(line.startswith("#PBS -l select=1:ncpus=4:mem=8") for line in lines)
    assert "#PBS -A gp" in lines
    assert "#PBS -l walltime=01:00:00" in lines
