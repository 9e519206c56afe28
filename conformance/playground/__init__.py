"""The playground: a page that shows how a program is compiled and what it gives."""
