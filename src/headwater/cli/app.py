"""The command line's verbs in the order a person meets them."""

from __future__ import annotations

from headwater.cli.added_verbs import add_verbs_of_others
from headwater.cli.advise import advise
from headwater.cli.analyze import analyze
from headwater.cli.check import check
from headwater.cli.demo import demo
from headwater.cli.explain import explain
from headwater.cli.history import history
from headwater.cli.impact import impact
from headwater.cli.init import init
from headwater.cli.plan import plan
from headwater.cli.program import add_verb, new_app
from headwater.cli.prove import prove
from headwater.cli.query import query
from headwater.cli.refresh import refresh
from headwater.cli.release import release
from headwater.cli.run import run
from headwater.cli.status import status
from headwater.cli.teardown import teardown
from headwater.cli.trace import trace
from headwater.cli.why_not import why_not

VERBS = (
    init,
    plan,
    run,
    status,
    query,
    trace,
    impact,
    why_not,
    history,
    explain,
    check,
    advise,
    analyze,
    refresh,
    release,
    teardown,
    demo,
    prove,
)

app = new_app()
for verb in VERBS:
    add_verb(app, verb)
add_verbs_of_others(app)
