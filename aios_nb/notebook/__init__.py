"""The notebook's face: ``%load_ext aios_nb``, magics, displays and widgets.

Nothing in here reaches below ``Site`` and ``SiteClient``; what only ipykernel knows is in
``kernel.py``.
"""
