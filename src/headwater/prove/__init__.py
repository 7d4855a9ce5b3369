"""Random views over random histories, maintained by the production code and compared at every tick: `headwater prove`."""
