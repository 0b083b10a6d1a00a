"""The data: the Python manual, blocks of text, and token files."""
