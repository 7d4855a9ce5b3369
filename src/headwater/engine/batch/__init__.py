"""One batch: choose its end, compute every view's change, commit."""
