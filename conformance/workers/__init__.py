"""Runs backends in processes of their own."""
