"""Literal readings of the papers that fail, kept only to show how: the lab plays them, no warehouse can choose them."""

from headwater_lab.literal.c_strobe_key_delete import C_STROBE_KEY_DELETE
from headwater_lab.literal.completion_order_install import COMPLETION_ORDER_INSTALL
from headwater_lab.literal.eca_key_collect_only import ECA_KEY_COLLECT_ONLY
from headwater_lab.literal.from_view_by_any_column import FROM_VIEW_BY_ANY_COLUMN
from headwater_lab.literal.initial_versions import INITIAL_VERSIONS_AFTER, INITIAL_VERSIONS_BEFORE
from headwater_lab.literal.irrelevant_unenforced import IRRELEVANT_UNENFORCED
from headwater_lab.literal.liang_yu_concurrent import LIANG_YU_CONCURRENT
from headwater_lab.literal.liang_yu_improved import LIANG_YU_IMPROVED
from headwater_lab.literal.liang_yu_simple import LIANG_YU_SIMPLE
from headwater_lab.literal.modified_in_place import MODIFIED_IN_PLACE
from headwater_lab.literal.nested_depth_limit import NESTED_DEPTH_LIMIT
from headwater_lab.literal.nested_single import NESTED_SINGLE
from headwater_lab.literal.no_follow_up import NO_FOLLOW_UP
from headwater_lab.literal.sweep_no_compensation import SWEEP_NO_COMPENSATION
from headwater_lab.literal.sweep_parallel_literal import SWEEP_PARALLEL_LITERAL
from headwater_lab.literal.sweep_printed_sign import SWEEP_PRINTED_SIGN
from headwater_lab.literal.sweep_queue_pipelined import SWEEP_QUEUE_PIPELINED
from headwater_lab.literal.sweep_race import SWEEP_RACE
from headwater_lab.literal.sweep_single import SWEEP_SINGLE
from headwater_lab.literal.variant import Variant
from headwater_lab.literal.versions_on_tuples import VERSIONS_ON_TUPLES

VARIANTS: tuple[Variant, ...] = (
    SWEEP_SINGLE,
    SWEEP_RACE,
    SWEEP_PARALLEL_LITERAL,
    SWEEP_QUEUE_PIPELINED,
    SWEEP_NO_COMPENSATION,
    SWEEP_PRINTED_SIGN,
    NESTED_SINGLE,
    NESTED_DEPTH_LIMIT,
    ECA_KEY_COLLECT_ONLY,
    C_STROBE_KEY_DELETE,
    VERSIONS_ON_TUPLES,
    INITIAL_VERSIONS_BEFORE,
    INITIAL_VERSIONS_AFTER,
    FROM_VIEW_BY_ANY_COLUMN,
    MODIFIED_IN_PLACE,
    IRRELEVANT_UNENFORCED,
    NO_FOLLOW_UP,
    COMPLETION_ORDER_INSTALL,
    LIANG_YU_SIMPLE,
    LIANG_YU_IMPROVED,
    LIANG_YU_CONCURRENT,
)
"""Every literal reading; `Variant.described` is what the lab plays, with the claims of the corrected algorithm."""
