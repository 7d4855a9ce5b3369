"""Literal readings of the papers that fail, kept only to show how: the lab plays them, no warehouse can choose them."""

from headwater.lab.literal.c_strobe_key_delete import C_STROBE_KEY_DELETE
from headwater.lab.literal.eca_key_collect_only import ECA_KEY_COLLECT_ONLY
from headwater.lab.literal.variant import Variant

VARIANTS: tuple[Variant, ...] = (
    ECA_KEY_COLLECT_ONLY,
    C_STROBE_KEY_DELETE,
)
"""Every literal reading; `Variant.described` is what the lab plays, with the claims of the corrected algorithm."""
