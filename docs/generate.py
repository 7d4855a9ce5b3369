"""Write the parts of docs/reference that the code knows best: every verb's help, and every error with its code."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from headwater.cli.app import VERBS, app

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ErrorSite:
    """One place that refuses something: the code, the kind of error, and the texts with their gaps as `…`."""

    code: str
    kind: str
    summary: str
    detail: str
    hint: str


def main() -> None:
    """Write the generated pages."""
    (REFERENCE / "cli.md").write_text(cli_page(), encoding="utf-8")
    (REFERENCE / "errors.md").write_text(errors_page(), encoding="utf-8")


def cli_page() -> str:
    """Return every verb's own help."""
    runner = CliRunner()
    parts = [
        "# The command line\n",
        "Written by `make docs` from the program's own help.\n",
        "Exit codes: 0 done, 1 refused (nothing was changed), 2 broke, or a promise was broken (`check`, `demo`).",
        "With `--json` a verb prints one JSON document on standard output and nothing else there; an error is",
        '`{"error": {"summary", "detail", "hint", "code"}}`. Decimals, NaN and infinities are texts in it.\n',
    ]
    for verb in VERBS:
        shown = runner.invoke(app, [verb.__name__, "--help"], prog_name="headwater", env={"COLUMNS": "110"})
        parts.append(f"## {verb.__name__}\n\n```\n{shown.stdout.strip()}\n```\n")
    return "\n".join(parts)


def errors_page() -> str:
    """Return every error that has a code, by its code."""
    rows = [
        f"| {site.code} | {site.kind} | {_cell(site.summary)} | {_cell(site.detail)} | {_cell(site.hint)} |"
        for site in error_sites()
    ]
    return "\n".join(
        [
            "# Errors\n",
            "Written by `make docs` from the code. An error says what failed, why, and what to do; `…` stands for your",
            "own names. Codes are stable: search for them.\n",
            "| code | kind | what failed | why | what to do |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def error_sites() -> list[ErrorSite]:
    """Return every place in the code that makes an error with a code."""
    sites = set()
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            words = {keyword.arg: _text(keyword.value) for keyword in node.keywords if keyword.arg}
            kind = node.func.id if isinstance(node.func, ast.Name) else ""
            if words.get("code", "").startswith("HW-") and kind[:1].isupper() and node.args:
                sites.add(
                    ErrorSite(
                        code=words["code"],
                        kind=kind,
                        summary=_text(node.args[0]),
                        detail=words.get("detail", ""),
                        hint=words.get("hint", ""),
                    )
                )
    return sorted(sites)


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(value) for value in values)
        case ast.BinOp(left=left, right=right):
            return _text(left) + _text(right)
        case _:
            return "…"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    main()
