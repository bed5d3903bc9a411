"""The notebook's face: ``%load_ext aios_nb``, magics, displays and widgets.

Nothing in here reaches below ``Site`` and ``SiteClient``, but for ``engine.py``, which gives agents
the kernel's main thread. What only ipykernel knows is in ``kernel.py``.
"""
