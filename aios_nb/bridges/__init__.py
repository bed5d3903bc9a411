"""Bridges to chat apps beside a node: where their files are, starting one, reaching one that runs.

The bridge itself is ``aios_bots``, which knows a node only as a client does. What it cannot know is
here: which node of this home it is for, and the tokens that the node gave it.
"""
