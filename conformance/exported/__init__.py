"""Exports the suite as files, with accepted results as raw bits (`uop-corpus/2`).

A checker in any language can read them. docs/suite-as-files.md describes the files; `export`
writes them, and `score` judges output files.
"""
