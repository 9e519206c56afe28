"""The published documents, row by row, with what became of each row here."""
