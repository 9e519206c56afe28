"""The static corpus: cases as files, with what is accepted as raw bits (`uop-corpus/1`).

Whoever can read a folder can check results: no code of this project is needed. docs/corpus.md
describes the files; `export` writes them, `score` judges outputs that somebody else has written.
"""
