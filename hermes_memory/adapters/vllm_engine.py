"""vLLM's engine behind an adapter: for models that generate and for models that embed. vLLM is imported on first use."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from hermes_memory.errors import InvalidConfig, ModelFailed

T = TypeVar("T")

RESTART_S = 10.0  # what a caller is asked to wait when the engine has died
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_WORKER_MULTIPROCESSING_METHOD": "spawn",  # a fork of a process with threads may hang
    "SPT_NOENV": "1",  # else a process's title is written over its environment, by which a server finds its own
}


class VllmEngine:
    """One ``AsyncLLM``, loaded on a thread with the first request, and anew after it has died.

    Args:
        arguments: Of vLLM's ``AsyncEngineArgs``.
        what: Who it is in an error: "the embedder".
        section: Of the configuration.
        load: Makes the engine; may raise the domain's errors.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        *,
        what: str,
        section: str,
        load: Callable[[Mapping[str, Any]], Any] | None = None,
    ) -> None:
        self._arguments, self._what = arguments, what
        self._load = load or partial(started, what, section)
        self._loading: asyncio.Task[Any] | None = None

    async def loaded(self) -> None:
        """Return when it is there. Raises what ``last`` raises."""
        await asyncio.shield(self._loaded())

    async def last(self, request: Callable[[Any], AsyncIterator[T]]) -> T:
        """The last output of a request to the engine; one that nobody waits for any more is aborted.

        Raises:
            ModelFailed: there is none; the engine may have died.
            InvalidConfig: it cannot be loaded as it is configured.
        """
        loading = self._loaded()
        engine = await asyncio.shield(loading)
        if self._loading is not loading:
            raise ModelFailed(self._what, "it is stopping")
        answer: list[T] = []
        try:
            async for output in request(engine):
                answer = [output]
        except Exception as error:  # noqa: BLE001  # what vLLM raises may quote the request
            raise self._failure(loading, engine, error) from None
        if not answer:
            raise ModelFailed(self._what, "it ended without an answer")
        return answer[0]

    def close(self) -> None:
        """End the engine and its processes. May be called twice; whoever asks afterwards has it started again."""
        loading, self._loading = self._loading, None
        if loading is None:
            return
        if loading.done():
            _end(loading)
        else:
            loading.add_done_callback(_end)

    def _loaded(self) -> asyncio.Task[Any]:
        failed = self._loading is not None and self._loading.done() and self._loading.exception() is not None
        if self._loading is None or failed:
            self._loading = asyncio.create_task(asyncio.to_thread(self._load, self._arguments))
        return self._loading

    def _failure(self, loading: asyncio.Task[Any], engine: Any, error: Exception) -> ModelFailed:
        if not engine.errored:
            return ModelFailed(self._what, type(error).__name__)
        if self._loading is loading:  # the first to notice
            self.close()
        return ModelFailed(self._what, "the engine has died", RESTART_S)


def _end(loading: asyncio.Task[Any]) -> None:
    if not loading.cancelled() and loading.exception() is None:
        loading.result().shutdown()


def started(what: str, section: str, arguments: Mapping[str, Any], **more: Any) -> Any:
    """A new ``AsyncLLM``; takes its time, and blocks.

    Args:
        what: Who it is in an error.
        section: Of the configuration.
        arguments: Of vLLM's ``AsyncEngineArgs``.
        more: Of ``AsyncLLM.from_engine_args``: ``stat_loggers`` …

    Raises:
        InvalidConfig: vLLM is not installed, does not know an argument, or cannot load the model.
        ModelFailed: the engine does not start.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError as error:
        raise InvalidConfig(f"{section}.kind", "needs vLLM: pip install 'hermes-memory[vllm]'") from error
    if unknown := sorted(arguments.keys() - AsyncEngineArgs.__dataclass_fields__.keys()):
        raise InvalidConfig(f"{section}.engine", f"is no argument of vLLM's engine: {', '.join(unknown)}")
    try:
        return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments), **more)
    except (OSError, ValueError) as error:
        why = f"cannot be loaded with {section}.engine as it is: {type(error).__name__}"
        raise InvalidConfig(f"{section}.model", why) from error
    except (
        Exception
    ) as error:  # whatever an engine dies of while it starts; its own processes tell on standard error
        raise ModelFailed(what, f"the engine does not start: {type(error).__name__}") from error
