"""What an adapter of a tensor library needs: a walk, and a builder with about a dozen methods."""
