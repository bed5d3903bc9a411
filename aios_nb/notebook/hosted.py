"""Where a kernel is hosted by somebody else, and who can reach a node there."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aios_nb.config import Settings

BINDER, HUB, COLAB = "Binder", "JupyterHub", "Colab"
OUTWARD_ONLY = "nobody can call in from outside; nodes it joins can call it over that link"
"""What holds for all of them: their proxies let the user's own browser in, and no other node."""


def host_of(environ: Mapping[str, str] | None = None) -> str | None:
    """Who runs this kernel: Binder, JupyterHub or Colab; None on a machine of one's own."""
    names = os.environ if environ is None else environ
    if any(name.startswith("BINDER_") for name in names):  # a Binder is a JupyterHub as well
        return BINDER
    if any(name.startswith("JUPYTERHUB_") for name in names):
        return HUB
    return COLAB if _has_colab() else None


def reach(settings: Settings, environ: Mapping[str, str] | None = None) -> str:
    """From where a node with these settings can be called, in a few words."""
    if settings.public_url:
        return f"reachable from everywhere as {settings.public_url}"
    if settings.allow_hosts:
        return f"reachable from this network as {settings.allow_hosts[0]}"
    host = host_of(environ)
    if host is None:
        return "reachable from this machine"
    return f"on {host}: {OUTWARD_ONLY}"


def _has_colab() -> bool:
    try:
        return importlib.util.find_spec("google.colab") is not None
    except (ImportError, ValueError):  # no package "google", or one without a place
        return False
