"""What every face of a node shares: the command line's and the notebook's words for people.

Errors in plain words, columns that fit, data as tables, a conversation as lines, checks.
"""
