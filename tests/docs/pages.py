"""The documentation's pages: their examples and their links.

An example is a fenced block that begins with ```python. The blocks of a page are one program: they run in order
and share their names. ```python no-run is shown only (it must still compile). A block may use `await`.

    python -m tests.docs.pages      compiles every example and follows every relative link
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")
LINK = re.compile(
    r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\((?P<image>[^)\s]+)\)"
)
HEADING = re.compile(r"^#{1,6}\s+(?P<title>.+?)\s*#*$")


@dataclass(frozen=True)
class Example:
    """A Python block of a page; `line` is that of its first line of code."""

    page: Path
    line: int
    source: str
    runs: bool

    def compiled(self) -> CodeType:
        """The code, with line numbers of the page; raises SyntaxError."""
        padded = "\n" * (self.line - 1) + self.source
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code: CodeType = compile(padded, str(self.page), "exec", flags=flags, dont_inherit=True)
        return code


@dataclass(frozen=True)
class Page:
    """A page split into what is code and what is prose."""

    path: Path
    examples: tuple[Example, ...]
    prose: tuple[tuple[int, str], ...]

    def anchors(self) -> set[str]:
        """The fragments its headings answer to, as GitHub makes them."""
        found: dict[str, int] = {}
        names = set()
        for _, line in self.prose:
            if heading := HEADING.match(line):
                slug = re.sub(r"[^\w\- ]", "", heading["title"].lower()).replace(" ", "-")
                again = found.get(slug, 0)
                found[slug] = again + 1
                names.add(f"{slug}-{again}" if again else slug)
        return names


def pages() -> list[Path]:
    """Every page with examples or links that must hold."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md")]
    return [path for path in top if path.exists()] + sorted((ROOT / "docs").rglob("*.md"))


def read(path: Path) -> Page:
    """Take a page apart; raises ValueError on a block that is never closed."""
    examples, prose = [], []
    block: list[str] | None = None
    begin, info, indent, marks = 0, "", "", ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if block is None:
            if fence:
                begin, info, indent, marks = (
                    number + 1,
                    fence["info"].strip(),
                    fence["indent"],
                    fence["marks"],
                )
                block = []
            else:
                prose.append((number, line))
        elif fence and not fence["info"].strip() and fence["marks"].startswith(marks):
            words = info.split()
            if words[:1] == ["python"]:
                source = "\n".join(text.removeprefix(indent) for text in block) + "\n"
                examples.append(Example(path, begin, source, "no-run" not in words))
            block = None
        else:
            block.append(line)
    if block is not None:
        raise ValueError(f"{path.relative_to(ROOT)}:{begin}: the block is never closed")
    return Page(path, tuple(examples), tuple(prose))


def broken_links(page: Page) -> list[str]:
    """The relative links of a page that lead nowhere."""
    broken = []
    for number, line in page.prose:
        for link in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            target = unquote(link["target"] or link["image"])
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            file, _, fragment = target.partition("#")
            path = (page.path.parent / file).resolve() if file else page.path
            where = f"{page.path.relative_to(ROOT)}:{number}: {target}"
            if not path.exists() or not path.is_relative_to(ROOT):
                broken.append(f"{where}: no such file in the repository")
            elif fragment and path.suffix == ".md" and fragment not in read(path).anchors():
                broken.append(f"{where}: no such heading")
    return broken


def problems() -> list[str]:
    """Everything that is wrong without running anything."""
    found = []
    for path in pages():
        try:
            page = read(path)
            found += broken_links(page)
            for example in page.examples:
                example.compiled()
        except SyntaxError as error:
            found.append(f"{path.relative_to(ROOT)}:{error.lineno}: {error.msg}")
        except ValueError as error:
            found.append(str(error))
    return found


if __name__ == "__main__":
    wrong = problems()
    print("\n".join(wrong) or f"{len(pages())} pages: examples compile, links resolve")
    sys.exit(1 if wrong else 0)
