"""What is said to a backend and what it replies: the worker protocol."""
