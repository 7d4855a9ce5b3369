"""Literal readings of the papers that fail, kept only to show how: the lab plays them, no warehouse can choose them."""

from headwater.lab.literal.variant import Variant

VARIANTS: tuple[Variant, ...] = ()
"""Every literal reading; `Variant.described` is what the lab plays, with the claims of the corrected algorithm."""
