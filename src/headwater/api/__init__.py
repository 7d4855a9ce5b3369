"""An open project: every verb as a method."""
