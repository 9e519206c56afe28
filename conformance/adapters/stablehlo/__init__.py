"""StableHLO: tensor programs as flat ops and as a module, and modules as tensor programs."""
