"""The op names, and one file of declarations per section; `declared` enters them all."""
