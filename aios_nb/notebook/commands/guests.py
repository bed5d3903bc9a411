"""``hub add``, ``hub list``, ``hub approve`` and so on: programs of others."""

from __future__ import annotations

from aios_nb.errors import UsageError
from aios_nb.notebook.commands import Call
from aios_nb.notebook.show.results import Note
from aios_nb.people.guests import approved, command_of
from aios_nb.site import Catalog, Import, Imports

_OPTIONS = ("name", "kind", "access", "token_env")


def add(call: Call) -> Import:
    url, command = call["url"], call["command"]
    if bool(url) == bool(command):
        raise UsageError(
            "%aios hub add needs a URL, or a command behind --",
            hint="%aios hub add https://… · %aios hub add -- npx -y some-server",
        )
    if url and "://" not in url:
        raise UsageError(
            f"{url[:60]} is no URL",
            hint=f'it begins with https:// or http://; to look for it: %aios hub "add {url[:60]}"',
        )
    options = {option: call[option] for option in _OPTIONS}
    return call.node().hub_add(url or command_of(command), local=call["local"], **options)


def everyone(call: Call) -> Imports:
    return call.node().hub_list()


def refresh(call: Call) -> Imports:
    return call.node().hub_refresh(call["name"])


def approve(call: Call) -> Note:
    return Note(approved(call.node().hub_approve(call["name"])))


def remove(call: Call) -> Note:
    call.node().hub_remove(call["name"])
    return Note(f"{call['name']} is forgotten")


def catalog(call: Call) -> Catalog:
    return call.node().hub_import(call["url"], local=call["local"])
