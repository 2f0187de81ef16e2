"""Checks of this machine: Python, frameworks, cores, memory, BLAS, GPU, data and results folder."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import psutil

from svgpbench import __version__
from svgpbench.atomic import why_unwritable
from svgpbench.backends import framework_missing, framework_of
from svgpbench.config import Strict
from svgpbench.environment import cpu_model, gpu_model, installed_versions, thread_pools
from svgpbench.ops import Framework
from svgpbench.plugins import BACKENDS, GROUPS, load_errors, plugins, registries, unused_plugins
from svgpbench.runs.cores import usable_cores
from svgpbench_datasets import DataError, Registry
from svgpbench_datasets.fetch.cache import cache_folder
from svgpbench_datasets.fetch.origins import mirrors_from_environment

IMPORT_LIMIT_S = 120

ASK_FRAMEWORK = """
import importlib, sys
from svgpbench.ops import Framework
from svgpbench.plugins import frameworks
framework = frameworks()[sys.argv[1]]
module = importlib.import_module(framework.module)
print(module.__version__, 'on', framework.device(module))
"""


class Finding(Strict):
    """Result of one check. `missing`: something optional is absent; `problem`: runs cannot work."""

    what: str
    state: Literal["ok", "missing", "problem"]
    found: str
    advice: str = ""


def diagnose(results: Path, *, deep: bool = False) -> Iterator[Finding]:
    """Run all checks. With `deep`, each framework is imported in a separate process."""
    versions = f"{platform.python_version()}, svgpbench {__version__}, {platform.platform()}"
    yield Finding(what="python", state="ok", found=versions)
    yield from _backends(deep)
    for group in GROUPS:
        for name, line in unused_plugins(group):
            advice = "mend or uninstall that package"
            yield Finding(what=name, state="missing", found=line, advice=advice)
    yield from _machine()
    yield _data()
    if why := why_unwritable(results):
        problem = f"{results} cannot be written ({why})"
        advice = "run in another folder, or name one with --results"
        yield Finding(what="results", state="problem", found=problem, advice=advice)
    else:
        yield Finding(what="results", state="ok", found=f"{results.absolute()} can be written")


def _backends(deep: bool) -> Iterator[Finding]:
    names = plugins(BACKENDS)
    if not names:
        yield Finding(
            what="backends",
            state="problem",
            found="none is registered",
            advice="install the package: pip install -e . in its folder",
        )
    versions, unusable = installed_versions(), load_errors(BACKENDS)
    for name in names:
        if missing := framework_missing(name):
            advice = missing.partition(": ")[2]
            yield Finding(what=name, state="missing", found="not installed", advice=advice)
        elif deep and (framework := framework_of(name)):
            yield _import_in_process(name, framework)
        elif name not in unusable:
            framework = framework_of(name)
            packages = framework.distributions if framework else (name,)
            version = next((versions[x] for x in packages if x in versions), "installed")
            yield Finding(what=name, state="ok", found=version)


def _import_in_process(name: str, framework: Framework) -> Finding:
    """Import a framework in a separate process; report its version and device, or the error."""
    environment = os.environ | framework.environment("", 1)
    try:
        done = subprocess.run(
            [sys.executable, "-c", ASK_FRAMEWORK, name],
            capture_output=True,
            text=True,
            timeout=IMPORT_LIMIT_S,
            env=environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(what=name, state="problem", found=f"cannot be imported: {error}")
    if done.returncode == 0:
        # the last line is ours: a framework may print others while it is imported
        return Finding(what=name, state="ok", found=done.stdout.strip().splitlines()[-1])
    reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    advice = f"pip install --force-reinstall '{framework.install}'"
    return Finding(what=name, state="problem", found=f"cannot be imported: {reason}", advice=advice)


def _machine() -> Iterator[Finding]:
    """Yield cores, memory, BLAS libraries, variables that limit threads, and the GPU."""
    import scipy.linalg  # noqa: F401 - loads the BLAS library

    usable = len(usable_cores())
    cores = f"{usable} usable of {os.cpu_count() or 1} logical, {cpu_model()}"
    yield Finding(what="cores", state="ok", found=f"{cores}: up to --jobs {usable}")
    memory = psutil.virtual_memory()
    free = f"{memory.available / 2**30:.1f} GiB free of {memory.total / 2**30:.1f} GiB"
    if memory.available < 2 << 30:
        advice = "a framework's worker takes up to 1 GiB: use --jobs 1"
        yield Finding(what="memory", state="missing", found=free, advice=advice)
    else:
        yield Finding(what="memory", state="ok", found=free)
    for pool in thread_pools():
        library = f"{pool.name} {pool.version or ''}".strip()
        yield Finding(what=pool.api, state="ok", found=f"{library}, {pool.threads} threads here")
    threads = {key: os.environ[key] for key in sorted(os.environ) if key.endswith("_NUM_THREADS")}
    if threads:
        text = ", ".join(f"{key}={value}" for key, value in threads.items())
        yield Finding(what="threads", state="ok", found=f"{text} (workers set their own)")
    if model := gpu_model():
        yield Finding(what="gpu", state="ok", found=model)
    else:
        yield Finding(what="gpu", state="missing", found="no NVIDIA GPU seen; --device cpu only")


def _data() -> Finding:
    """Report the folder of downloads, the mirrors, and the number of data sets at hand."""
    mirrors = mirrors_from_environment()
    shipped = [registry for registry in registries() if isinstance(registry, Registry)]
    try:
        cache = cache_folder()
        at_hand = [registry.at_hand(name) for registry in shipped for name in registry.names()]
    except DataError as error:
        return Finding(what="data", state="problem", found=str(error))
    sets = f"{sum(at_hand)} of {len(at_hand)} sets at hand, downloads in {cache}"
    if mirrors:
        return Finding(what="data", state="ok", found=f"{sets}, mirrors: {', '.join(mirrors)}")
    advice = "" if all(at_hand) else "svgpbench fetch NAME brings another"
    return Finding(what="data", state="ok", found=sets, advice=advice)
