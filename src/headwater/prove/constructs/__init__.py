"""Every construct of the SQL reference, as something that is done to a FROM item, by kind. `every` has all of them."""
