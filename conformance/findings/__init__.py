"""Wrong answers of tinygrad, each a script that needs tinygrad alone and a program that shows it.

`uop.conformance.finding_runs` runs the scripts on each device; nothing imports them.
"""
