"""Where rows come from: the source rows that derived a view's rows, segment by segment (paper 004's tracing queries).

Pure: the caller says where rows may be read (`reading`) and what runs SQL.
"""
