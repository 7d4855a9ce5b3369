"""① The autonomous databases, behind one small protocol."""
