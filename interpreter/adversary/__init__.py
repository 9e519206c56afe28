"""An evaluator that takes every liberty that a backend may take."""
