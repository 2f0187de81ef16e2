"""The kit's command line: backends and their device, methods, likelihoods, and known failures.

The process has the environment variables of a worker and one thread. A file of known failures has one
pattern of test names per line, and `#` before comments. Tests that match are expected to fail; one that
passes is reported.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from svgpbench.backends import check_backend, load_backend
from svgpbench.checks.evaluate import REFERENCE
from svgpbench.config import BackendConfig
from svgpbench.errors import UserError
from svgpbench.ops import Ops
from svgpbench.plugins import BACKENDS, LIKELIHOODS, METHODS, load
from svgpbench.runs.worker_setup import pin, worker_environment

KIT_FOLDER = Path(__file__).parent
TESTS_OF_METHODS = "test_method.py"
TESTS_OF_LIKELIHOODS = "test_likelihood.py"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the kit's options."""
    group = parser.getgroup("svgpbench", "conformance of plugins")
    group.addoption("--backend", action="append", metavar="NAME[:MODE]", help="repeat for several")
    group.addoption("--method", action="append", metavar="NAME", help="repeat for several")
    group.addoption("--likelihood", action="append", metavar="NAME", help="repeat for several")
    group.addoption("--device", default="cpu", help="device of the backends; cpu by default")
    group.addoption("--known-failures", metavar="FILE", help="patterns of test names, one a line")


@dataclass
class Kit:
    """Options of a run: backends, their device, methods, likelihoods and known failures."""

    backends: list[BackendConfig]
    device: str
    methods: list[str]
    likelihoods: list[str]
    known_failures: dict[str, list[str]] = field(default_factory=dict)  # pattern → matching names

    def targets(self) -> list[tuple[str, str, str]]:
        """Return every backend with its mode and each dtype that it offers."""
        return [
            (b.name, b.mode, dtype)
            for b in self.backends
            for dtype in load(BACKENDS, b.name).capabilities.dtypes
        ]


KIT = pytest.StashKey[Kit]()


def pytest_configure(config: pytest.Config) -> None:
    """Read the options, and set up this process like a worker."""
    try:
        config.stash[KIT] = _read_options(config)
    except UserError as error:
        raise pytest.UsageError(str(error)) from None


def _read_options(config: pytest.Config) -> Kit:
    """Return the options. Loads the plugins, and sets the environment variables and threads."""
    methods: list[str] = config.getoption("method") or []
    likelihoods: list[str] = config.getoption("likelihood") or []
    names: list[str] = config.getoption("backend") or []
    if not names and not methods and not likelihoods:
        raise UserError("say what to test: --backend NAME, --method NAME or --likelihood NAME")
    names = names or [REFERENCE]
    backends = [BackendConfig.parse(name) for name in names]
    for backend in backends:
        check_backend(backend.name)
    for method in methods:
        load(METHODS, method)
    for likelihood in likelihoods:
        load(LIKELIHOODS, likelihood)
    device: str = config.getoption("device")
    # frameworks read these once, when `pin` or `load_backend` imports them
    os.environ.update(worker_environment(device, 1))
    for name in dict.fromkeys(backend.name for backend in backends):
        pin(name, 1, [])  # once: PyTorch refuses a second number of threads
    for backend in backends:
        first_dtype = load(BACKENDS, backend.name).capabilities.dtypes[0]
        load_backend(backend.name, backend.mode, first_dtype, device)  # refuses a missing device
    text = ""
    if file := config.getoption("known_failures"):
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UserError(f"--known-failures {file} cannot be read: {error}") from None
    patterns = [line.partition("#")[0].strip() for line in text.splitlines()]
    return Kit(
        backends, device, methods, likelihoods, {pattern: [] for pattern in patterns if pattern}
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise tests by backend and dtype, and tests of methods by variant too."""
    kit = metafunc.config.stash[KIT]
    targets = kit.targets()
    # reversed: the first dtype of a backend and a mode is entered last, and stays
    firsts = list({target[:2]: target for target in reversed(targets)}.values())[::-1]
    for name, values in (("typed", targets), ("ops", firsts)):
        if name in metafunc.fixturenames:
            ids = [" ".join(filter(None, target)) for target in values]
            metafunc.parametrize(name, values, indirect=True, ids=ids)
    if "moded" in metafunc.fixturenames:
        metafunc.parametrize("moded", firsts, indirect=True, ids=["-".join(x) for x in firsts])
    if "likelihood_name" in metafunc.fixturenames:
        metafunc.parametrize("likelihood_name", kit.likelihoods)
    if "variant" in metafunc.fixturenames:
        from svgpbench.checks.cases import variants_of

        cases = [case for method in kit.methods for case in variants_of(method)]
        metafunc.parametrize("variant", cases, ids=[case.name for case in cases])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore tests of what is not given; without methods and likelihoods, backends are tested."""
    if collection_path.parent != KIT_FOLDER or not collection_path.name.startswith("test_"):
        return None
    kit = config.stash[KIT]
    given = {TESTS_OF_METHODS: kit.methods, TESTS_OF_LIKELIHOODS: kit.likelihoods}
    plugins = given.get(collection_path.name)
    tested = not (kit.methods or kit.likelihoods) if plugins is None else bool(plugins)
    return None if tested else True


def _ops(request: pytest.FixtureRequest) -> Ops:
    name, mode, dtype = request.param
    return load_backend(name, mode, dtype, request.config.stash[KIT].device)


@pytest.fixture(scope="module")
def typed(request: pytest.FixtureRequest) -> Ops:
    """Return each backend in each dtype that it offers."""
    return _ops(request)


@pytest.fixture(scope="module")
def ops(request: pytest.FixtureRequest) -> Ops:
    """Return each backend in its first dtype."""
    return _ops(request)


@pytest.fixture
def moded(request: pytest.FixtureRequest) -> Ops:
    """Return each backend in its requested mode and its first dtype."""
    return _ops(request)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark known failures as expected to fail."""
    names_by_pattern = config.stash[KIT].known_failures
    for pattern in names_by_pattern:
        literal = pattern.replace("[", "[[]")  # matches the brackets of a test's parameters
        names_by_pattern[pattern] = [item.name for item in items if fnmatchcase(item.name, literal)]
    pattern_of = {name: pattern for pattern, names in names_by_pattern.items() for name in names}
    for item in items:
        if item.name in pattern_of:
            reason = f"known failure: {pattern_of[item.name]}"
            item.add_marker(pytest.mark.xfail(reason=reason, strict=False))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Report known failures that pass, and patterns that match no test."""
    for report in terminalreporter.stats.get("xpassed", []):
        name = report.nodeid.rpartition("::")[2]
        terminalreporter.line(f"known failure that passes: {name}", yellow=True)
    for pattern, names in config.stash[KIT].known_failures.items():
        if not names:
            terminalreporter.line(f"known failure that fits no test: {pattern}", yellow=True)
