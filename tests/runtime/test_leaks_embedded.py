"""The same of ``Memory``, in this process: what it leaves on the disk when it is closed holds no secret (SPEC §4.1.3)."""

from __future__ import annotations

from pathlib import Path

from hermes_memory import Memory
from hermes_memory.app.commands import Export
from tests.runtime.local_app import WITHOUT_MODEL
from tests.runtime.test_leaks import ONE_OF_EACH, files, held


def test_spec_4_1_3_no_file_of_a_closed_memory_holds_a_secret(tmp_path: Path) -> None:
    with Memory.open(tmp_path, **WITHOUT_MODEL) as memory:
        for number, sample in enumerate(ONE_OF_EACH):
            memory.remember("ana", sample.text, session=f"s-{number}", scene="travel")
            memory.recall("ana", sample.text)
        exported = str(memory.ask("ana", Export()))
        open_files = list(files(tmp_path))
    assert not held(ONE_OF_EACH, exported)
    for name, text in (*open_files, *files(tmp_path)):
        assert not held(ONE_OF_EACH, text), name
