"""The ledger: every row, rule and sentence of the published documents, and where it stands here."""
