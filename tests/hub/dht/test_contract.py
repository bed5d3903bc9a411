"""The package's private names that ours stand on. If one of these fails, read its new source."""

from __future__ import annotations

import importlib.metadata
import inspect

import kademlia.crawling
import kademlia.network
import kademlia.node
import kademlia.protocol
import kademlia.routing
import kademlia.storage
import pytest
import rpcudp.protocol
from kademlia.network import Server
from kademlia.node import Node
from kademlia.protocol import KademliaProtocol
from kademlia.routing import KBucket, RoutingTable
from kademlia.storage import IStorage
from rpcudp.protocol import RPCProtocol

SIGNATURES = {
    Server: {
        "__init__": "(self, ksize=20, alpha=3, node_id=None, storage=None)",
        "stop": "(self)",
        "_create_protocol": "(self)",
        "listen": "(self, port, interface='0.0.0.0')",
        "refresh_table": "(self, interval=3600)",
        "_refresh_table": "(self)",
        "bootstrappable_neighbors": "(self)",
        "bootstrap": "(self, addrs)",
        "bootstrap_node": "(self, addr)",
        "get": "(self, key)",
        "set": "(self, key, value)",
        "set_digest": "(self, dkey, value)",
        "save_state": "(self, fname)",
        "load_state": "(fname, port, interface='0.0.0.0')",
        "save_state_regularly": "(self, fname, frequency=600)",
    },
    KademliaProtocol: {
        "__init__": "(self, source_node, storage, ksize)",
        "get_refresh_ids": "(self)",
        "rpc_stun": "(self, sender)",
        "rpc_ping": "(self, sender, nodeid)",
        "rpc_store": "(self, sender, nodeid, key, value)",
        "rpc_find_node": "(self, sender, nodeid, key)",
        "rpc_find_value": "(self, sender, nodeid, key)",
        "call_find_node": "(self, node_to_ask, node_to_find)",
        "call_find_value": "(self, node_to_ask, node_to_find)",
        "call_ping": "(self, node_to_ask)",
        "call_store": "(self, node_to_ask, key, value)",
        "welcome_if_new": "(self, node)",
        "handle_call_response": "(self, result, node)",
    },
    RPCProtocol: {
        "__init__": "(self, wait_timeout=5)",
        "connection_made": "(self, transport)",
        "datagram_received": "(self, data, addr)",
        "_solve_datagram": "(self, datagram, address)",
        "_accept_response": "(self, msg_id, data, address)",
        "_accept_request": "(self, msg_id, data, address)",
        "_timeout": "(self, msg_id)",
        "__getattr__": "(self, name)",
    },
    RoutingTable: {
        "__init__": "(self, protocol, ksize, node)",
        "flush": "(self)",
        "split_bucket": "(self, index)",
        "lonely_buckets": "(self)",
        "remove_contact": "(self, node)",
        "is_new_node": "(self, node)",
        "add_contact": "(self, node)",
        "get_bucket_for": "(self, node)",
        "find_neighbors": "(self, node, k=None, exclude=None)",
    },
    KBucket: {
        "__init__": "(self, rangeLower, rangeUpper, ksize, replacementNodeFactor=5)",
        "touch_last_updated": "(self)",
        "get_nodes": "(self)",
        "split": "(self)",
        "remove_node": "(self, node)",
        "has_in_range": "(self, node)",
        "is_new_node": "(self, node)",
        "add_node": "(self, node)",
        "depth": "(self)",
        "head": "(self)",
    },
    Node: {
        "__init__": "(self, node_id, ip=None, port=None)",
        "same_home_as": "(self, node)",
        "distance_to": "(self, node)",
    },
    IStorage: {
        "__setitem__": "(self, key, value)",
        "__getitem__": "(self, key)",
        "get": "(self, key, default=None)",
        "iter_older_than": "(self, seconds_old)",
        "__iter__": "(self)",
    },
}


def test_the_versions_are_those_that_were_read() -> None:
    assert importlib.metadata.version("kademlia") == "2.2.3"
    assert importlib.metadata.version("rpcudp") == "5.0.1"


@pytest.mark.parametrize("of", SIGNATURES, ids=lambda of: of.__name__)
def test_names_and_signatures_are_as_they_were(of: type) -> None:
    found = {name: str(inspect.signature(getattr(of, name))) for name in SIGNATURES[of]}
    assert found == SIGNATURES[of]
    new = {
        name
        for name, value in vars(of).items()
        if inspect.isfunction(value) and name not in SIGNATURES[of]
        if not (name.startswith("__") and name.endswith("__"))
    }
    assert not new, "methods that nobody here has looked at"


def test_what_objects_of_the_package_hold_is_what_ours_replace() -> None:
    server = Server(node_id=b"\0" * 20)
    assert set(vars(server)) == {
        "ksize", "alpha", "storage", "node", "transport", "protocol", "refresh_loop",
        "save_state_loop",
    }  # fmt: skip
    protocol = server._create_protocol()
    assert set(vars(protocol)) == {
        "_wait_timeout", "_outstanding", "transport", "router", "storage", "source_node",
    }  # fmt: skip
    assert set(vars(protocol.router)) == {"node", "protocol", "ksize", "buckets"}
    assert set(vars(protocol.router.buckets[0])) == {
        "range", "nodes", "replacement_nodes", "last_updated", "ksize", "max_replacement_nodes",
    }  # fmt: skip
    assert set(vars(Node(b"\1" * 20))) == {"id", "ip", "port", "long_id"}


def test_ours_are_theirs_and_leave_no_door_of_theirs_open() -> None:
    from aios_nb.hub.dht.engine import KademliaDht
    from aios_nb.hub.dht.protocol import DhtProtocol
    from aios_nb.hub.dht.routing import Bucket, Routes
    from aios_nb.hub.dht.storage import NodeRecords

    assert issubclass(KademliaDht, Server)
    assert issubclass(DhtProtocol, KademliaProtocol)
    assert issubclass(Routes, RoutingTable)
    assert issubclass(Bucket, KBucket)
    assert issubclass(NodeRecords, IStorage)
    remote = [name for name in dir(KademliaProtocol) if name.startswith(("rpc_", "call_"))]
    assert remote
    assert all(getattr(DhtProtocol, name) is None for name in remote)
    assert "_solve_datagram" in vars(DhtProtocol), "the package's reader of datagrams"


def test_the_packages_codec_and_crawlers_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.hub.dht.village import Village, run

    class Unused:
        def __getattr__(self, name: str) -> None:
            raise AssertionError(f"the package's {name} was used")

    monkeypatch.setattr(rpcudp.protocol, "umsgpack", Unused())
    monkeypatch.setattr(kademlia.network, "pickle", Unused())
    monkeypatch.setattr(kademlia.network, "NodeSpiderCrawl", Unused())
    monkeypatch.setattr(kademlia.network, "ValueSpiderCrawl", Unused())

    async def story() -> None:
        async with Village() as village:
            await village.build(5)
            await village.publish()
            first, last = village.houses[0], village.houses[-1]
            assert await last.dht.get(first.node_id)

    run(story)
