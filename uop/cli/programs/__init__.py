"""The commands on one program."""
