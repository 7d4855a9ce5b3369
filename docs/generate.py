"""Write the parts of docs/reference that the code knows best: verbs, settings, errors, and what a view may say.

`PAGES` is all of it. A page depends on the code alone, so that a test can tell whether the one in the tree is stale.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from typer.testing import CliRunner

from headwater.cli.app import app
from headwater.cli.entry import VERBS
from headwater.errors import InvalidView
from headwater.maintenance.published.algorithms import ALGORITHMS
from headwater.model.settings import Allowed, Count, groups, settings_of
from headwater.observe.metrics import METRICS
from headwater.project.schema import project_schema
from headwater.views.compile.reasons import WHYS
from headwater.views.text.functions import (
    AGGREGATE_FUNCTIONS,
    NOT_REPEATABLE_FUNCTIONS,
    READER_FUNCTIONS,
    SCALAR_FUNCTIONS,
    WINDOW_FUNCTIONS,
)
from headwater.views.text.support import REASONS, Reason
from headwater_lab.cli.app import LAB_VERBS
from headwater_lab.literal import VARIANTS
from headwater_lab.shapes import SHAPES

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
SOURCES = ROOT / "src"
PAPERS = ROOT / "docs" / "theory" / "papers.md"
_EXAMPLE = SHAPES["chain"].setting(3).view
"""Any view: the formulas are the same for all."""

_FUNCTIONS_PER_LINE = 8

_SETTINGS_OPENING = """\
# Settings

Written by `make docs` from the code. Settings trade memory, latency, load and freshness. None changes what a view shows
at a tick. Write only what you change into [the project file](project-file.md):

```toml
[settings.capture]
append_pause = "50 ms"

[settings.bootstrap]
chunk_rows = 100_000
```

Lengths of time are written `"500 ms"`, `"60 s"`, `"10 min"`, `"12 h"` or `"1 day"`; sizes `"512 MB"`, `"16 MiB"` or
`"2 GiB"`; numbers of rows and the like without quotes. An unknown key and a value out of range are errors. A running
`headwater run` takes a change up by itself, as it does with other changes of the project.

The size of batches and the memory of the process, what a single source may be asked, how history is kept and how a
view is kept are in their own tables: `[maintenance]`, `[sources.NAME]`, `[warehouse]` and `[views.NAME]`.
"""

_METRICS_OPENING = """\
# Metrics

Written by `make docs` from the code. `headwater run --metrics 9464` serves them on 127.0.0.1 for Prometheus
(`pip install "headwater[metrics]"`). Counters and histograms begin at zero with each `run`; gauges are read from the
warehouse whenever a server asks, and the console has them, too, at `/metrics`. What is not known has no series: the lag
of a source that does not answer, say. See [monitor](../guides/monitor.md#metrics).
"""

_SQL_OPENING = """\
# What a view may say

Written by `make docs` from the code. A view is one SELECT in Spark's SQL (ANSI mode), over relations written
`SOURCE.TABLE` or `SOURCE.SCHEMA.TABLE`:

```sql
SELECT s.sale_id, s.amount * 2 AS doubled, e.name AS clerk
FROM shop.sales AS s
JOIN staff.employees AS e ON e.employee_id = s.clerk_id
WHERE s.amount > 10 AND e.name LIKE 'A%'
```

- **Joins**: any number of joins (inner, cross, left, right, full, semi, anti), written `JOIN … ON`, `JOIN … USING` or
  with commas; any condition (equalities find partners by value, others are only tested); any relation any number of
  times, each with an alias.
- **Groups**: GROUP BY (expressions, places, outputs, ALL, ROLLUP, CUBE, GROUPING SETS with GROUPING and
  GROUPING_ID), HAVING, DISTINCT, aggregates (below) with DISTINCT and FILTER.
- **Queries inside**: in FROM and WITH to any depth, each computed once however often it is read; EXISTS, IN, NOT EXISTS
  and NOT IN, and values `(SELECT …)`, linked to the outer query or not, anywhere in an expression.
- **Other views**: another view of the project by its bare name, `FROM sales_by_clerk`, wherever a relation may stand.
  Its query stands in its place, as if WITH named it, so the view above is exact at every tick whatever becomes of the
  one below; what both are computed from is kept once. Changing the upstream view changes the other too; an upstream
  view that is still named cannot be dropped; a name that WITH gives in the same text comes first.
- **Sets**: UNION, INTERSECT and EXCEPT, each with ALL or without.
- **Order**: window functions; ORDER BY … LIMIT. ORDER BY without LIMIT says nothing about a table and is left out.
  An order that is not given in full is completed by all columns of the row: see
  [below](#orders-that-are-not-given-in-full).
- **Rows**: bags, not sets. A row that the SELECT gives twice is in the view twice. NULL follows SQL's rules.
- **Columns**: every output has a name of its own; `*` and `alias.*` are written out when the view is declared.
- **Expressions**: columns, literals, arithmetic, comparisons, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE, CASE, CAST,
  `||`, `array[…]`, intervals, and the functions below. One that can fail on a value (a division, a cast) is computed
  only for rows that really are in the view; if it fails there, the view stops at that tick, with the reason.
- **Bounds** (HW-275): a text of 1,000,000 characters, lists of 10,000 items, 100 joins, parentheses and CASE 100 deep,
  chains of about 1,000 operators. Longer lists of values belong into a table of a source, which a view joins.
"""


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
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")
    PAPERS.write_text(papers_page(PAPERS.read_text(encoding="utf-8")), encoding="utf-8")


def papers_page(written: str) -> str:
    """Return the page about the papers with the table of algorithms as the registry has it. The rest is written."""
    opening, closing = "<!-- algorithms: written by `make docs` -->\n", "<!-- end of algorithms -->"
    before, _, rest = written.partition(opening)
    _, _, after = rest.partition(closing)
    if not after:
        raise ValueError("docs/theory/papers.md does not say where the table of algorithms begins and ends")
    headings = ("algorithm", "paper", "guarantees", "needs of a view", "queries for a transaction", "read literally")
    rows = (
        (
            f"`{one.name}`",
            one.paper,
            one.guarantee.value,
            "; ".join(requirement.name for requirement in one.requirements) or "nothing",
            one.cost(_EXAMPLE).formula,
            "; ".join(f"`{variant.name}` {variant.wrong}" for variant in VARIANTS if variant.of == one.name) or "–",
        )
        for one in ALGORITHMS
    )
    return "".join([before, opening, "\n", *(f"{line}\n" for line in _table(headings, rows)), "\n", closing, after])


def cli_page() -> str:
    """Return every verb's own help."""
    runner = CliRunner()
    parts = [
        "# The command line\n",
        "Written by `make docs` from the program's own help.\n",
        "Exit codes: 0 done, 1 refused (nothing was changed), 2 failed, or a promise was broken (`check`, `demo`).",
        "With `--json` a verb prints one JSON document on standard output and nothing else there; an error is",
        '`{"error": {"summary", "detail", "hint", "code"}}`; several have a list `"errors"` of such parts beside it.',
        "Decimals, NaN and infinities are texts.\n",
        "The verbs of `headwater lab` come with a distribution of their own: see [the lab](../lab.md).\n",
    ]
    commands = [[verb] for verb in VERBS] + [["lab", verb.__name__] for verb in LAB_VERBS]
    for command in commands:
        shown = runner.invoke(app, [*command, "--help"], prog_name="headwater", env={"COLUMNS": "110"})
        parts.append(f"## {' '.join(command)}\n\n```\n{shown.stdout.strip()}\n```\n")
    return "\n".join(parts)


_FLOAT_SUMS = """
### Sums of doubles

Adding doubles rounds, so Spark's own `SUM(x)` of `FLOAT` or `DOUBLE` depends on the order in which it meets the rows.
Headwater defines it by its value, for maintenance, `check` and every judge alike:

- `SUM(x)` is the exact sum of the values that are not NULL, rounded once, to the nearest double (ties to even); beyond
  the largest double it is infinite. It is NaN if a value is NaN or both infinities are there, else the infinity that
  is there.
- `AVG(x)` is `SUM(x) / COUNT(x)`.

- `VARIANCE`, `STDDEV`, `SKEWNESS`, `KURTOSIS`, `COVAR` and `CORR`, of whatever type, add doubles one by one, smallest
  first: the values for their mean, then products of distances from it. `VAR_POP(x)` is the sum of
  `(x - mean) * (x - mean)` by the number of values. They are computed from the rows of the groups that change (HW-261).

So equal rows have equal values, whatever came and went in between. The last digits may differ from what Spark gives
for the same text."""


_OPEN_ORDERS = """
### Orders that are not given in full

`row_number() OVER (PARTITION BY id ORDER BY at)` does not say which of two rows with the same `at` comes first, and
`LIMIT 1` not which of two rows that tie. Headwater completes such an order, for maintenance, lineage, `check` and every
judge alike, so that the answer depends on the rows alone:

- **Windows**: after what ORDER BY says come all columns of everything that FROM names, in the order of FROM
  (`a.*, b.*`), ascending, NULLs first. In a SELECT that groups, what it groups by comes instead, and after it
  `GROUPING(…)` of that for ROLLUP, CUBE and GROUPING SETS. A window without ORDER BY is ordered by these alone.
- **LIMIT and OFFSET**: after what ORDER BY says come all columns that the query gives, ascending, NULLs first.
- Rows that are equal in all columns are equal: the view does not depend on which of them comes first.
- This concerns `row_number`, `ntile`, `lag`, `lead`, `first_value`, `last_value`, `nth_value` and every ROWS frame.
  `rank` and its like and RANGE frames depend on peers alone and stay as they are: `last_value(x) OVER (ORDER BY at)`
  is the last of the rows that have the same `at` as this one, for all of them.
- Columns that cannot change the order are not read: none, if ORDER BY has the relation's primary key.
- A source's columns of types that cannot be held are no part of the row.

A view whose SQL leaves an order open is built again when a relation that FROM names gets or loses a column; `plan` says
so. What cannot be completed is refused: a column without a name or order (HW-290), the first or last row within a
RANGE distance (HW-291), two different orders in one SELECT over rows that may be equal (HW-292), `first_value` of a
group (HW-293). `first`, `any_value`, `collect_list`, `max_by`, `mode` and other aggregates whose value depends on an
order are refused as any unknown function is (HW-241)."""


def errors_page() -> str:
    """Return every error that has a code, by its code."""
    return "\n".join(
        [
            "# Errors\n",
            "Written by `make docs` from the code. An error says what failed, why, and what to do; `…` stands for your",
            "own names. Codes are stable: search for them.\n",
            *_table(
                ("code", "kind", "what failed", "why", "what to do"),
                ((site.code, site.kind, site.summary, site.detail, site.hint) for site in error_sites()),
            ),
            "",
        ]
    )


def schema_page() -> str:
    """Return the JSON schema of the project file."""
    return json.dumps(project_schema(), indent=2, ensure_ascii=False) + "\n"


def metrics_page() -> str:
    """Return every metric."""
    rows = (
        (f"`{one.name}`", one.kind.value, ", ".join(f"`{label}`" for label in one.labels) or "–", one.meaning)
        for one in METRICS
    )
    return "\n".join([_METRICS_OPENING, *_table(("metric", "kind", "labels", "meaning"), rows), ""])


def settings_page() -> str:
    """Return every setting, by its group."""
    file = SOURCES / "headwater" / "model" / "settings.py"
    classes = {
        node.name: node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)
    }
    parts = [_SETTINGS_OPENING]
    for name, defaults in groups().items():
        group = classes[type(defaults).__name__]
        rows = (
            (
                f"`{key}`",
                f"`{setting.allowed.text(setting.default)}`",
                _bounds(setting.allowed),
                _sentence_below(group, setting.field).removesuffix("."),
            )
            for key, setting in settings_of(defaults).items()
        )
        about = (ast.get_docstring(group) or "").replace("\n", " ")
        parts += [f"## [settings.{name}]\n", f"{about}\n", *_table(("key", "default", "allowed", "meaning"), rows), ""]
    return "\n".join(parts)


def _bounds(allowed: Allowed) -> str:
    if allowed == Count.__metadata__[0]:
        return f"from {allowed.text(allowed.least)}"
    return f"{allowed.text(allowed.least)} to {allowed.text(allowed.most)}".replace('"', "")


def _sentence_below(group: ast.ClassDef, name: str) -> str:
    """Return the text below a field of a class, which has to be there."""
    for field, below in pairwise(group.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id == name:
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    return text
    raise ValueError(f"setting {name} of {group.name} does not say what it means")


def sql_page() -> str:
    """Return what a view may say, and what is refused with which remedy."""
    wrong = [reason for reason in REASONS if reason.error is InvalidView]
    unsupported = [reason for reason in REASONS if reason.error is not InvalidView]
    return "\n".join(
        [
            _SQL_OPENING,
            "## Functions\n",
            *_listed(sorted(SCALAR_FUNCTIONS)),
            "\nTheir value depends on their arguments alone. These are refused because theirs does not (HW-240):\n",
            *_listed(sorted(NOT_REPEATABLE_FUNCTIONS)),
            "\nAny other function is refused too (HW-241), users' own among them: what they do is unknown.\n",
            "Texts that Spark reads as the time of the run are refused as well: `'today'`, `'now'` and the like, and",
            "timestamps without a day (`TIMESTAMP '12:30'`). What is not seen at declaration: a text *column* that",
            "is cast to a timestamp, or given to `hour` and the like, gets the day of the run where it holds a time",
            "of day alone.",
            "Cast such a column to `TIMESTAMP_NTZ`, which refuses it, or put a day before it.\n",
            "A query over views (`headwater query`) may say what a view may say, and call these besides:\n",
            *_listed(sorted(READER_FUNCTIONS)),
            "",
            "## Aggregates and window functions\n",
            *_listed(sorted(AGGREGATE_FUNCTIONS)),
            "\nTheir value depends on the rows alone, not on their order. Only in windows:\n",
            *_listed(sorted(WINDOW_FUNCTIONS)),
            _FLOAT_SUMS,
            _OPEN_ORDERS,
            "\n## What is recomputed\n",
            "Everything else is maintained by changes alone. `headwater explain` says where one of these applies; a",
            "view with `strict = true` is refused if one reads all rows of its input.\n",
            *_table(
                ("code", "what", "reads all rows", "what to do"),
                ((why.code, why.what, "yes" if why.whole else "", why.remedy) for why in WHYS),
            ),
            "\n## What is not maintained\n",
            *_refusals(unsupported),
            "\n## What is wrong in any view\n",
            *_refusals(wrong),
            "",
        ]
    )


def error_sites() -> list[ErrorSite]:
    """Return every error with a code that the code makes, or that it holds the texts of in a table, once each."""
    texts = {str(file): file.read_text(encoding="utf-8") for file in SOURCES.rglob("*.py")}
    return sorted({site for _, site in error_places(texts)})


def error_places(texts: Mapping[str, str]) -> list[tuple[str, ErrorSite]]:
    """Return the places in files, given by their texts, that make an error with a code, each with its error."""
    trees = {name: ast.parse(text) for name, text in texts.items()}
    codes = {name: text for tree in trees.values() for name, text in _constants(tree).items() if text.startswith("HW-")}
    return [
        (f"{name}:{node.lineno}", site)
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for site in _sites(name, node, codes | _constants(tree))
    ]


def unclear_codes(places: list[tuple[str, ErrorSite]]) -> dict[str, list[str]]:
    """Return the codes that mean two things, with the places that use them.

    A code means one thing if it is always of the same kind and says the same failed. Of a summary that is made
    elsewhere nothing can be told, so a code with such a one has one place.
    """
    found: dict[str, list[str]] = {}
    meanings: dict[str, set[tuple[str, str]]] = {}
    for place, site in places:
        found.setdefault(site.code, []).append(place)
        summary = site.summary.replace('"', "")
        meanings.setdefault(site.code, set()).add((site.kind, summary if summary.strip("… ") else place))
    return {code: found[code] for code, meant in meanings.items() if len(meant) > 1}


def _sites(file: str, call: ast.Call, constants: Mapping[str, str]) -> Iterator[ErrorSite]:
    """Yield the error that a call makes: `SourceLost("…", code="HW-313", …)`, or `Reason(code="HW-201", …)`.

    A call that passes on the code of another error (`code=error.code`) makes none of its own.
    """
    said = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    code = said.get("code")
    if code is None or (isinstance(code, ast.Attribute) and code.attr == "code"):
        return
    words = {name: _text(value, constants) for name, value in said.items()}
    made = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if isinstance(code, ast.Name) and code.id == "code" and made == "__init__":
        return
    if not words["code"].startswith("HW-"):
        raise ValueError(f"{file}:{call.lineno}: which code is this? Write it out, or name a constant of a module")
    what = words.get("what", "") if made == "Why" else f"source … {words.get('what')}"
    summary = _text(call.args[0], constants) if call.args else words.get("summary") or what
    yield ErrorSite(
        code=words["code"],
        kind=_kind(made, said.get("error")),
        summary=summary,
        detail=words.get("detail", ""),
        hint=words.get("hint") or words.get("remedy", ""),
    )


def _kind(made: str, error: ast.expr | None) -> str:
    """Return the error that a call makes; a row of a table says which, or leaves it to its table's default."""
    if isinstance(error, ast.Name):
        return error.id
    return {"Reason": "UnsupportedView", "ServerRequirement": "SourceRefused", "Why": "said by `explain`"}.get(
        made, made
    )


def _constants(tree: ast.Module) -> dict[str, str]:
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _text(node: ast.expr, constants: Mapping[str, str]) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) if name in constants:
            return constants[name]
        case ast.JoinedStr(values=values):
            return "".join(_text(value, {}) for value in values)
        case ast.BinOp(left=left, right=right):
            return _text(left, constants) + _text(right, constants)
        case _:
            return "…"


def _refusals(reasons: list[Reason]) -> Iterator[str]:
    return _table(("code", "what", "what to do"), ((reason.code, reason.summary, reason.remedy) for reason in reasons))


def _listed(names: list[str]) -> Iterator[str]:
    for start in range(0, len(names), _FUNCTIONS_PER_LINE):
        yield ", ".join(f"`{name}`" for name in names[start : start + _FUNCTIONS_PER_LINE]) + (
            "," if start + _FUNCTIONS_PER_LINE < len(names) else "."
        )


def _table(headings: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield "|" + "---|" * len(headings)
    for row in rows:
        yield f"| {' | '.join(text.replace('|', chr(92) + '|').replace(chr(10), ' ') for text in row)} |"


PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "headwater.schema.json": schema_page,
    "errors.md": errors_page,
    "metrics.md": metrics_page,
    "settings.md": settings_page,
    "sql.md": sql_page,
}
"""The generated pages by their file names."""


if __name__ == "__main__":
    main()
