"""Programs as `.uop` files; backends and workers beside them are not installed."""
