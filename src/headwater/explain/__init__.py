"""How a view is maintained and what that costs, in words: `headwater explain`."""
