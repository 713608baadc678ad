"""The documentation's examples run, page by page, and its links resolve."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.pages import ROOT, Page, pages, problems, read

if TYPE_CHECKING:
    from pathlib import Path


def test_examples_compile_and_links_resolve() -> None:
    assert problems() == []


@pytest.mark.model
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "page", [read(path) for path in pages()], ids=lambda page: str(page.path.relative_to(ROOT))
)
def test_a_page_runs(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    names: dict[str, Any] = {"__name__": "__example__"}
    with asyncio.Runner() as runner:
        for example in page.examples:
            if not example.runs:
                continue
            code = example.compiled()
            if code.co_flags & inspect.CO_COROUTINE:
                runner.run(eval(code, names))  # noqa: S307  # the page's own code is what is tested
            else:
                exec(code, names)  # noqa: S102  # as above


def test_the_reader_knows_code_from_prose(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "# A title\n```python\nx = 1\n```\n```python no-run\ny = 2\n```\n```text\n[no](link.md)\n```\n"
        "1. item\n   ```python\n   await z\n   ```\n## 第二节：A title!\n",
        encoding="utf-8",
    )
    page = read(path)
    assert [(example.line, example.source, example.runs) for example in page.examples] == [
        (3, "x = 1\n", True),
        (6, "y = 2\n", False),
        (13, "await z\n", True),
    ]
    assert page.anchors() == {"a-title", "第二节a-title"}
    assert page.examples[2].compiled().co_flags & inspect.CO_COROUTINE
