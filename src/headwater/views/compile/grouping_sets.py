"""GROUP BY's list: its keys, and which of them each grouping has (GROUPING SETS, ROLLUP, CUBE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from headwater.views.compile.names import Sight, find_names
from headwater.views.compile.written import Written, aggregates_in
from headwater.views.text import support


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingKeys:
    """All keys, whose names are found, and per grouping the places of its keys."""

    keys: tuple[exp.Expr, ...]
    sets: tuple[tuple[int, ...], ...]
    is_plain: bool

    @property
    def is_one_group(self) -> bool:
        """Whether all rows are one group, which is there even if there are no rows."""
        return self.is_plain and not self.keys


def read_keys(select: exp.Select, written: Written, sight: Sight) -> GroupingKeys:
    """Return what a SELECT groups by; nothing at all is one group."""
    group = select.args.get("group")
    if group is None:
        return GroupingKeys(keys=(), sets=((),), is_plain=True)
    if group.args.get("all"):
        plain = tuple(dict.fromkeys(v for v in written.values if not any(aggregates_in(v))))
        return GroupingKeys(keys=plain, sets=(tuple(range(len(plain))),), is_plain=True)
    aliases = {name.lower(): value for name, value in zip(written.names, written.values, strict=True)}

    def found(item: exp.Expr) -> exp.Expr:
        if isinstance(item, exp.Literal) and item.is_int:
            place = int(item.name)
            if not 1 <= place <= len(written.values):
                hint = f"write a number from 1 to {len(written.values)}, or what to group by"
                raise sight.scope.statement.refusal(
                    support.UNKNOWN_COLUMN,
                    item,
                    because=f"GROUP BY {place}",
                    hint=hint,
                )
            return written.values[place - 1]
        return find_names(item, sight, aliases).unnest()

    given = list(group.expressions)
    listed = [found(item) for item in given if not _is_special(item)]
    special = [
        *(group.args.get("grouping_sets") or ()),
        *(group.args.get("rollup") or ()),
        *(group.args.get("cube") or ()),
    ]
    if with_all := [item for item in special if not isinstance(item, exp.GroupingSets) and not item.expressions]:
        # GROUP BY a, b WITH ROLLUP: the same as ROLLUP (a, b)
        given, special = [], [type(with_all[0])(expressions=given)]
    elif group.args.get("grouping_sets") and given and not any(map(_is_special, given)):
        given = []  # GROUP BY a, b GROUPING SETS (...): the list only says what may be in the sets
    alternatives = [[tuple(found(part) for part in one) for one in _sets_of(item)] for item in [*given, *special]]
    chosen = [tuple(dict.fromkeys(key for one in picked for key in one)) for picked in product(*alternatives)]
    keys = tuple(dict.fromkeys([*listed, *(key for one in chosen for key in one)]))
    if not keys and chosen == [()]:  # GROUPING SETS (()) is one group, as without GROUP BY; ((), ()) is none of no rows
        return GroupingKeys(keys=(), sets=((),), is_plain=True)
    return GroupingKeys(
        keys=keys,
        sets=tuple(tuple(keys.index(key) for key in one) for one in chosen),
        is_plain=not any(map(_is_special, [*given, *special])),
    )


def _is_special(item: exp.Expr) -> bool:
    return isinstance(item, (exp.GroupingSets, exp.Rollup, exp.Cube))


def _sets_of(item: exp.Expr) -> list[Sequence[exp.Expr]]:
    """Return the sets of keys that an item of GROUP BY stands for."""
    if not _is_special(item):
        return [[item]]
    parts = [_members(part) for part in item.expressions]
    if isinstance(item, exp.GroupingSets):
        return [
            one for part, members in zip(item.expressions, parts, strict=True)
            for one in (_sets_of(part) if _is_special(part) else [members])
        ]  # fmt: skip
    count = len(parts)
    if isinstance(item, exp.Rollup):
        choices = [tuple(range(length)) for length in range(count, -1, -1)]
    else:
        choices = [chosen for length in range(count, -1, -1) for chosen in combinations(range(count), length)]
    return [[key for place in chosen for key in parts[place]] for chosen in choices]


def _members(part: exp.Expr) -> list[exp.Expr]:
    if isinstance(part, exp.Tuple):
        return list(part.expressions)
    return [part.this] if isinstance(part, exp.Paren) else [part]
