"""The report of a run in its formats: terminal, JSON, JUnit, HTML, GitHub."""
