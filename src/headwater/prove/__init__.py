"""Random views over random histories, kept by the production code and compared at every tick: `headwater prove`."""
