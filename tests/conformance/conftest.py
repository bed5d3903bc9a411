"""A node in conformance mode for all tests of a file, and MCP clients for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.sites import TestSite

Visit = Callable[[Any], Awaitable[Any]]


class Door:
    """The MCP door of a node, and a client of either era that comes without a token."""

    def __init__(self, site: TestSite) -> None:
        self.site = site
        assert site.node.run_info is not None
        self.url = f"{site.node.run_info.url}/mcp"

    def visit(self, work: Visit, **options: Any) -> Any:
        """What ``work`` gives, done with a connected ``mcp.Client``."""
        from mcp import Client

        async def connected() -> Any:
            async with Client(self.url, **options) as client:
                return await work(client)

        return asyncio.run(connected())


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    site = TestSite(tmp_path_factory.mktemp("conformance"), name="suite", conformance=True)
    yield Door(site)
    site.stop()
