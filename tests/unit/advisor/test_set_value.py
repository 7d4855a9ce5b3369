"""A value of the project file is changed, and nothing else is."""

import tomllib

import pytest

from headwater.advisor.apply_advice import Value, set_value

TEXT = """\
# our shop
[project]
name = "shop"   # never changes

[relations."shop.sales"]
reading = "probe"  # ask, keep no copy

[views.orders] # dear to us
keep = [
    "lineage:join_1",  # a bracket ] in a comment
    "split:a[0]",
]
strict = true

[views.other]
strict = false
"""


@pytest.mark.parametrize(
    ("path", "key", "value", "gone", "come"),
    [
        (
            ("relations", "shop.sales"),
            "reading",
            "replica",
            ['reading = "probe"  # ask'],
            ['reading = "replica"  # ask'],
        ),
        (("views", "other"), "keep", ["split:g"], [], ['keep = ["split:g"]']),
        (
            ("views", "orders"),
            "keep",
            ["split:g"],
            ["keep = [", '    "lineage:join_1"', '    "split:a[0]",', "]"],
            ['keep = ["split:g"]'],
        ),
        (("views", "orders"), "keep", None, ["keep = [", '    "lineage:join_1"', '    "split:a[0]",', "]"], []),
        (("relations", "shop.old.x"), "reading", "probe", [], ['[relations."shop.old.x"]', 'reading = "probe"']),
        (("views", "new"), "keep", ["lineage:j"], [], ["[views.new]", 'keep = ["lineage:j"]']),
    ],
)
def test_one_value_changes(
    path: tuple[str, ...], key: str, value: Value | None, gone: list[str], come: list[str]
) -> None:
    changed = set_value(TEXT, path, key, value)
    table = tomllib.loads(changed)
    for part in path:
        table = table[part]
    assert table.get(key) == value
    before, after = TEXT.splitlines(), changed.splitlines()
    lost = [line for line in before if line not in after]
    assert all(any(line.startswith(one) for one in gone) for line in lost), lost
    new = [line for line in after if line and line not in before]
    assert len(new) == len(come)
    assert all(line.startswith(one) for line, one in zip(new, come, strict=True))


def test_what_is_not_there_need_not_go() -> None:
    assert set_value(TEXT, ("views", "new"), "keep", None) == TEXT
    assert set_value(TEXT, ("views", "other"), "keep", None) == TEXT
