"""The tables of a node's database, as a list of steps from one version to the next.

``PRAGMA user_version`` counts the steps that were taken. A step that has shipped is never edited;
a change is a new step at the end.
"""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    # 1: one node, its conversations, its files, its records
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;

    CREATE TABLE callers (
        n INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        calls INTEGER NOT NULL DEFAULT 0,
        seconds REAL NOT NULL DEFAULT 0,
        last_at INTEGER NOT NULL DEFAULT 0
    ) STRICT;

    CREATE TABLE nodes (
        id TEXT PRIMARY KEY,
        state TEXT NOT NULL,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE conversations (
        n INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        opener TEXT NOT NULL,
        title TEXT NOT NULL,
        agents TEXT NOT NULL,
        members TEXT NOT NULL DEFAULT '[]',
        parent TEXT,
        created INTEGER NOT NULL,
        touched INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX conversations_by_touch ON conversations (touched) WHERE touched > 0;

    -- The log. Rows are only ever added; deleting a conversation blanks the rows that carry a
    -- call (conversation NULL), so that a repeated id is still known for as long as we promise.
    -- What an event does not have is '' or 0, not NULL: Python hands a NULL or a BLOB over to
    -- SQLite by the long way, which made a row a fifth dearer.
    CREATE TABLE events (
        cursor INTEGER PRIMARY KEY,
        conversation INTEGER,
        seq INTEGER NOT NULL,
        message_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        ref TEXT NOT NULL,
        sender TEXT NOT NULL,
        sender_type TEXT NOT NULL,
        text TEXT NOT NULL,
        data TEXT NOT NULL,
        files TEXT NOT NULL,
        status TEXT NOT NULL,
        at INTEGER NOT NULL,
        caller INTEGER NOT NULL,
        call TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX events_by_conversation ON events (conversation, seq);
    CREATE UNIQUE INDEX events_by_call ON events (caller, message_id) WHERE caller > 0;

    CREATE TABLE records (
        key TEXT PRIMARY KEY,
        seq INTEGER NOT NULL,
        bytes BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE blobs (
        sha256 TEXT PRIMARY KEY,
        size INTEGER NOT NULL,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE blob_readers (
        sha256 TEXT NOT NULL,
        reader TEXT NOT NULL,
        PRIMARY KEY (sha256, reader)
    ) STRICT, WITHOUT ROWID;
    """,
    # 2: other nodes
    """
    -- A side log bears the name its home gave the conversation; two homes may use the same one.
    ALTER TABLE conversations ADD COLUMN theirs TEXT NOT NULL DEFAULT '';

    -- Who joined when is asked at each run; there are few such rows among many.
    CREATE INDEX events_joins ON events (conversation, ref) WHERE kind = 'join';

    CREATE TABLE tokens (
        id TEXT PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        scope TEXT NOT NULL,
        prefix TEXT NOT NULL,
        as_owner INTEGER NOT NULL,
        created INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- A bare name means the same agent for ever, once it was used.
    CREATE TABLE bindings (
        name TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- Who answered at a URL that was joined without saying whom to expect.
    CREATE TABLE joined (
        url TEXT PRIMARY KEY,
        node TEXT NOT NULL,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    # 3: the network
    """
    -- Nodes that were there when last seen: whom to greet after a restart.
    CREATE TABLE remembered_nodes (
        node TEXT PRIMARY KEY,
        record BLOB NOT NULL,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    # 4: what was used of it
    """
    -- Agents of other nodes that were asked from here: how often, and what they said of
    -- themselves then. ``card`` is the hash in their record, empty if there was none.
    CREATE TABLE used_agents (
        agent TEXT PRIMARY KEY,
        talks INTEGER NOT NULL,
        at INTEGER NOT NULL,
        card TEXT NOT NULL,
        said TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    # 5: programs that speak other protocols
    """
    -- MCP servers and A2A agents that were added to the hub. ``address`` is a URL, or a command as
    -- a JSON array. ``approved`` and ``seen`` are what it said of itself when it was approved and
    -- when it was last looked at, ``pin`` the hash of what was approved.
    CREATE TABLE imports (
        name TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        address TEXT NOT NULL,
        options TEXT NOT NULL,
        pin TEXT NOT NULL,
        approved TEXT NOT NULL,
        seen TEXT NOT NULL,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- What the other side calls a conversation of ours.
    CREATE TABLE import_contexts (
        name TEXT NOT NULL,
        conversation TEXT NOT NULL,
        context TEXT NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (name, conversation)
    ) STRICT, WITHOUT ROWID;
    """,
)
