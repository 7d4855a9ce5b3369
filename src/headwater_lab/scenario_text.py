"""Scenarios as plain text, read and written. What is written can be read again, and is the same scenario.

    # What the story is about.
    view: SELECT r.a, s.d FROM shop.r r, store.s s WHERE r.b = s.c
    relation shop.r (a int, b int) key (a): (1, 2)
    relation store.s (c int, d int): nothing         how relations are written is in `relation_text`
    expect sweep: complete

    shop.r: insert (9, 2), delete (1, 2)             one transaction; `; shop.q: ...` for another relation of it
    warehouse: receive shop                          its next message; `shop@1`: all up to its first transaction
    ---
    ask store with r -(1, 2), +(9, 2): s

    store: answer                                    the oldest query sent to it, from its state of this moment
    all: finish                                      until nothing is on its way any more
    ---
    install tick 1: nothing
    view: nothing

A line that begins with spaces goes on with the one before; one that begins with # is a remark.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from headwater.model.guarantee import Guarantee
from headwater.model.relation import Relation, RelationName
from headwater_lab.errors import InvalidScenario
from headwater_lab.in_memory.bag import Row
from headwater_lab.one_join import declare
from headwater_lab.relation_text import NAME, RELATION, RELATION_NAME, format_columns, format_relation, parse_relation
from headwater_lab.rows_text import NOTHING, ROWS, format_bag, format_counted, parse_rows
from headwater_lab.scenario import CommitMove, Finish, Move, Receive, Scenario, ScenarioBlock, Serve
from headwater_lab.world import WorldSetting

_RULE = "---"
_CHANGE = rf"(insert|delete)\s+({ROWS})"
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "relation": re.compile(rf"relation\s+{RELATION}\s*:\s*(?P<rows>{NOTHING}|{ROWS})"),
    "view": re.compile(r"view\s*:\s*(.+)"),
    "expect": re.compile(r"expect\s+([\w-]+)\s*:\s*([a-z]+)"),
    "commit": re.compile(
        rf"{RELATION_NAME}\s*:\s*{_CHANGE}(?:\s*,\s*{_CHANGE})*"
        rf"(?:\s*;\s*{RELATION_NAME}\s*:\s*{_CHANGE}(?:\s*,\s*{_CHANGE})*)*"
    ),
    "serve": re.compile(rf"({NAME})\s*:\s*answer"),
    "receive": re.compile(rf"warehouse\s*:\s*receive\s+({NAME})(?:@(\d+))?"),
    "finish": re.compile(r"all\s*:\s*finish"),
}
"""What each kind of line looks like."""

_HEADER = ("view", "relation", "expect")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    number: int
    text: str


@dataclass(slots=True)
class _Reading:
    """What has been read of a scenario so far."""

    name: str
    about: list[str] = field(default_factory=list)
    sql: str = ""
    catalog: dict[RelationName, Relation] = field(default_factory=dict)
    rows: dict[RelationName, Counter[Row]] = field(default_factory=dict)
    expected: dict[str, Guarantee] = field(default_factory=dict)
    blocks: list[ScenarioBlock] = field(default_factory=list)
    telling: bool = False
    """Whether the lines are now what follows, and not moves."""

    def refuse(self, line: _Line, problem: str, hint: str) -> InvalidScenario:
        """Return the error that says where the text goes wrong."""
        return InvalidScenario(
            f'scenario "{self.name}", line {line.number}: {problem}', code="HW-711", detail=line.text, hint=hint
        )


def parse_scenario(text: str, *, name: str) -> Scenario:
    """Return the scenario that a text tells, or raise an error that names the line where it goes wrong."""
    reading = _Reading(name=name)
    for line in _lines(text):
        _take(reading, line)
    if not reading.sql or not reading.catalog or not reading.expected:
        missing = [
            word
            for word, given in (("view", reading.sql), ("relation", reading.catalog), ("expect", reading.expected))
            if not given
        ]
        raise InvalidScenario(
            f'scenario "{name}" is not complete',
            code="HW-712",
            detail=f"there is no line that begins with: {', '.join(missing)}",
            hint="begin with `view: SELECT ...`, `relation SOURCE.NAME (column type, ...): rows`, "
            "`expect ALGORITHM: guarantee`",
        )
    view = declare("view", reading.sql, reading.catalog, path=name)
    return Scenario(
        name=name,
        about=tuple(reading.about),
        setting=WorldSetting(view=view, catalog=reading.catalog, rows=reading.rows),
        expected=reading.expected,
        blocks=tuple(block for block in reading.blocks if block.moves or block.remarks),
    )


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines, empty ones too. One that begins with spaces is a part of the one before."""
    waiting: _Line | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        if waiting is not None and raw.strip() and raw[0].isspace():
            waiting = replace(waiting, text=f"{waiting.text} {raw.strip()}")
            continue
        if waiting is not None:
            yield waiting
        waiting = _Line(number=number, text=raw.rstrip())
    if waiting is not None:
        yield waiting


def _take(reading: _Reading, line: _Line) -> None:
    if not line.text:
        reading.telling = False
        if reading.blocks and reading.blocks[-1].moves:
            reading.blocks.append(ScenarioBlock(moves=(), line=line.number + 1))
    elif line.text.startswith("#"):
        _take_remark(reading, line)
    elif line.text == _RULE:
        if not reading.blocks or not reading.blocks[-1].moves:
            raise reading.refuse(line, "nothing is played that this could follow from", "write moves above the ---")
        reading.telling = True
        reading.blocks[-1] = replace(reading.blocks[-1], told=())
    elif reading.telling:
        told = reading.blocks[-1].told or ()
        reading.blocks[-1] = replace(reading.blocks[-1], told=(*told, line.text))
    else:
        _take_line(reading, line)


def _take_remark(reading: _Reading, line: _Line) -> None:
    remark = line.text.removeprefix("#").strip()
    if not reading.sql and not reading.catalog:
        reading.about.append(remark)
        return
    if not reading.blocks or reading.blocks[-1].moves:
        reading.blocks.append(ScenarioBlock(moves=(), line=line.number))
    reading.blocks[-1] = replace(reading.blocks[-1], remarks=(*reading.blocks[-1].remarks, remark))


def _take_line(reading: _Reading, line: _Line) -> None:
    kind, match = _kind_of(reading, line)
    if kind in _HEADER:
        if any(block.moves for block in reading.blocks):
            raise reading.refuse(line, "the moves have begun already", "write it above the first move")
        match kind:
            case "view":
                reading.sql = match[1]
            case "relation":
                _take_relation(reading, line, match)
            case _:
                _take_expectation(reading, line, match)
        return
    if not reading.blocks:
        reading.blocks.append(ScenarioBlock(moves=(), line=line.number))
    block = reading.blocks[-1]
    moves = (*block.moves, _move(reading, line, kind, match))
    reading.blocks[-1] = replace(block, moves=moves, line=block.line or line.number)


def _kind_of(reading: _Reading, line: _Line) -> tuple[str, re.Match[str]]:
    for kind, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(line.text):
            return kind, match
    raise reading.refuse(
        line,
        "not understood",
        "moves are `SOURCE.RELATION: insert (1, 2)`, `SOURCE: answer`, `warehouse: receive SOURCE`, `all: finish`; "
        "what follows from them stands below ---, up to an empty line",
    )


def _take_relation(reading: _Reading, line: _Line, match: re.Match[str]) -> None:
    try:
        relation = parse_relation(match, reading.catalog)
    except ValueError as unfit:
        raise reading.refuse(line, *unfit.args) from None
    reading.catalog[relation.name] = relation
    rows: Counter[Row] = Counter()
    for row, count in [] if match["rows"] == NOTHING else _rows(reading, line, match["rows"], relation):
        rows[row] += count
    reading.rows[relation.name] = rows


def _take_expectation(reading: _Reading, line: _Line, match: re.Match[str]) -> None:
    levels = {guarantee.value: guarantee for guarantee in Guarantee}
    if match[2] not in levels:
        raise reading.refuse(line, f'"{match[2]}" is not a guarantee', f"guarantees are {', '.join(levels)}")
    reading.expected[match[1]] = levels[match[2]]


def _move(reading: _Reading, line: _Line, kind: str, match: re.Match[str]) -> Move:
    match kind:
        case "serve":
            return Serve(source=_known(reading, line, match[1]), line=line.number)
        case "receive":
            version = int(match[2]) if match[2] else None
            return Receive(source=_known(reading, line, match[1]), version=version, line=line.number)
        case "finish":
            return Finish(line=line.number)
        case _:
            return _commit(reading, line)


def _known(reading: _Reading, line: _Line, source: str) -> str:
    sources = sorted({name.source for name in reading.catalog})
    if source not in sources:
        raise reading.refuse(line, f'there is no source "{source}"', f"sources are {', '.join(sources)}")
    return source


def _commit(reading: _Reading, line: _Line) -> CommitMove:
    changes: dict[RelationName, Counter[Row]] = {}
    starts = list(re.finditer(rf"(?:^|;)\s*{RELATION_NAME}\s*:", line.text))
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        name = RelationName(source=start[1], name=start[2])
        if name not in reading.catalog:
            names = ", ".join(map(str, reading.catalog))
            raise reading.refuse(line, f"there is no relation {name}", f"relations are {names}")
        said = line.text[start.end() : following.start() if following else None]
        change = changes.setdefault(name, Counter())
        for verb, rows in re.findall(_CHANGE, said):
            for row, count in _rows(reading, line, rows, reading.catalog[name]):
                change[row] += count if verb == "insert" else -count
    sources = {name.source for name in changes}
    if len(sources) > 1:
        raise reading.refuse(
            line, f"one transaction of {len(sources)} sources", "a transaction is of one source; write two lines"
        )
    return CommitMove(source=sources.pop(), changes=changes, line=line.number)


def _rows(reading: _Reading, line: _Line, text: str, relation: Relation) -> list[tuple[Row, int]]:
    try:
        return parse_rows(text, relation)
    except ValueError as problem:
        raise reading.refuse(line, str(problem), f"its columns are {format_columns(relation)}") from None


def format_scenario(scenario: Scenario) -> str:
    """Return a scenario as text."""
    setting = scenario.setting
    lines = [f"# {remark}".rstrip() for remark in scenario.about]
    lines += ["", f"view: {' '.join(setting.view.sql.split())}"]
    lines += [
        f"relation {format_relation(relation)}: {format_bag(setting.rows.get(name, {}))}"
        for name, relation in setting.catalog.items()
    ]
    lines += [f"expect {name}: {guarantee.value}" for name, guarantee in scenario.expected.items()]
    for block in scenario.blocks:
        lines += ["", *(f"# {remark}".rstrip() for remark in block.remarks)]
        lines += [format_move(move) for move in block.moves]
        lines += [] if block.told is None else [_RULE, *block.told]
    return "\n".join(lines) + "\n"


def format_move(move: Move) -> str:
    """Return a move as a scenario writes it."""
    match move:
        case CommitMove():
            return "; ".join(f"{name}: {format_changes(rows)}" for name, rows in move.changes.items())
        case Serve():
            return f"{move.source}: answer"
        case Receive():
            return f"warehouse: receive {move.source}" + ("" if move.version is None else f"@{move.version}")
        case Finish():
            return "all: finish"


def format_changes(rows: Mapping[Row, int]) -> str:
    """Return signed rows as what was inserted and deleted.

    >>> format_changes({(1, 2): -1, (1, 3): 1})
    'delete (1, 2), insert (1, 3)'
    """
    parts = [("insert" if count > 0 else "delete", format_counted(row, abs(count))) for row, count in rows.items()]
    said: list[str] = []
    previous = ""
    for verb, row in parts:
        said.append(row if verb == previous else f"{verb} {row}")
        previous = verb
    return ", ".join(said)
