"""Where rows come from: the source rows that derived a view's rows, segment by segment (paper 004's tracing queries).

Pure: whoever traces says where rows may be read (`reading`) and who runs SQL.
"""
