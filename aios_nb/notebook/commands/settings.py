"""``mcp-config``: how other programs reach the agents of this notebook."""

from __future__ import annotations

from aios_nb.home import Home
from aios_nb.notebook.commands import Call
from aios_nb.people.settings_for import Settings, settings_for


def mcp_config(call: Call) -> Settings:
    """With more than one node the settings name this notebook's; alone it is found anyway."""
    site = call.session.site()
    home = Home(getattr(getattr(site, "settings", None), "home", None))
    running = home.running()
    own = getattr(site, "name", None) if len(running) > 1 else None
    info = getattr(site, "run_info", None)
    return settings_for(call["client"], home, node=own, url=info.url if info else None)
