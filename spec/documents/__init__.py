"""The published documents, row by row, and the status of each row in this project."""
