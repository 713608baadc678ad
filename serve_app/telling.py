"""What a replica raises is told our way: Serve logs it, and what a stranger raises may quote what users said."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes_memory.core.failures import told
from hermes_memory.errors import HermesError


@contextmanager
def without_words(log: logging.Logger, what: str, failure: Callable[[str], HermesError]) -> Iterator[None]:
    """Our errors go on as they are; whatever else comes becomes ``failure`` of its kind's name."""
    try:
        yield
    except HermesError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, it goes on as one of ours
        log.error("%s failed: %s", what, told(error))
        raise failure(type(error).__name__) from None
