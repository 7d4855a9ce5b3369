"""IN and NOT IN where NULL makes them unknown, inside larger expressions.

A test becomes TRUE or FALSE for every row (`attach_queries`): where SQL says unknown, FALSE. That is right wherever
unknown and FALSE lead to the same, which is so below AND and OR of a condition, and not below NOT. So NOT is moved down
to the tests first, as Spark does:

    NOT (p OR x IN (...))     is   NOT p AND x NOT IN (...)
    NOT (p AND x IN (...))    is   NOT p OR x NOT IN (...)

Anywhere else (`(x IN ...) = TRUE`, `COALESCE(x IN ..., ...)`, an output of a query that another one reads) Spark's
answer depends on how it rewrites the whole text. There is no incremental form for that: the text itself is run.
"""

from __future__ import annotations

from sqlglot import exp

from headwater.views.compile.expressions import has_query, replace_parts


def move_not_to_tests(expression: exp.Expr) -> exp.Expr:
    """Return an expression with every NOT above AND, OR or NOT moved down, if there is a query below it.

    >>> import sqlglot
    >>> move_not_to_tests(sqlglot.parse_one("NOT (p OR x IN (SELECT y FROM s))")).sql()
    '(NOT p AND NOT x IN (SELECT y FROM s))'
    """

    def moved(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Not) and isinstance(node.this.unnest(), (exp.And, exp.Or, exp.Not)) and has_query(node):
            return _negated(node.this)
        return None

    return replace_parts(expression, moved)


def _negated(expression: exp.Expr) -> exp.Expr:
    bare = expression.unnest()
    match bare:
        case exp.And():
            return exp.or_(_negated(bare.left), _negated(bare.right))
        case exp.Or():
            return exp.and_(_negated(bare.left), _negated(bare.right))
        case exp.Not():
            return move_not_to_tests(bare.this)
        case _:
            inside = move_not_to_tests(bare)
            return exp.Not(this=exp.paren(inside) if isinstance(inside, exp.Binary) else inside)


def is_decided(test: exp.Expr, root: exp.Expr, *, root_decides: bool) -> bool:
    """Tell whether it makes no difference if a test inside an expression is FALSE where it is unknown.

    `root_decides` says that it makes none for the expression as a whole: it is a condition, or an output of the view.
    """
    node = test
    while node is not root:
        above = node.parent
        assert above is not None, "a part of an expression stands below it"
        if isinstance(above, exp.If) and node.arg_key == "this":
            return _chooses_values(above)
        if isinstance(above, exp.Where) and isinstance(above.parent, exp.Filter):
            return True
        if not isinstance(above, (exp.And, exp.Or, exp.Paren)):
            return False
        node = above
    return root_decides


def _chooses_values(branch: exp.If) -> bool:
    """Tell whether a CASE or IF chooses among values. One that gives TRUE and FALSE Spark takes for a condition."""
    case = branch.parent if isinstance(branch.parent, exp.Case) else branch
    if case.args.get("this") is not None and isinstance(case, exp.Case):
        return False
    branches = case.args["ifs"] if isinstance(case, exp.Case) else [case]
    results = [*(one.args.get("true") for one in branches), case.args.get("default"), case.args.get("false")]
    return not any(isinstance(result.unnest(), exp.Boolean) for result in results if result is not None)
