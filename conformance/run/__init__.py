"""A whole run: options, the pool of workers, known failures."""
