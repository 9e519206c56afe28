"""Bug reports: a failure of a backend as Markdown that its maintainers can act on."""
