"""Wrong answers of tinygrad, each a script that needs tinygrad alone and a program that shows it.

The scripts are run, not imported: `uop.conformance.finding_runs` does it on each device.
"""
