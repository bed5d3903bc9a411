"""The tables of a bridge's database, as a list of steps from one version to the next.

As in a node's: a step that has shipped is never edited; a change is a new step at the end. Times
are unix milliseconds. What is not there is '' or 0.
"""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;

    -- Where a conversation is shown. A group without a row here is not enabled.
    CREATE TABLE binding (
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        topic TEXT NOT NULL,
        conversation TEXT NOT NULL,
        agent TEXT NOT NULL,
        mode TEXT NOT NULL,
        last_seq INTEGER NOT NULL DEFAULT 0,
        parked TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (account, chat, topic)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX binding_by_conversation ON binding (conversation);

    -- Every update as it came, before the app is told that we have it. The id stays for a week:
    -- ids do not arrive in order and can begin anew, so "higher than the last" is no test.
    CREATE TABLE inbox (
        account TEXT NOT NULL,
        update_id INTEGER NOT NULL,
        at INTEGER NOT NULL,
        raw TEXT NOT NULL,
        state TEXT NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (account, update_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX inbox_open ON inbox (account, update_id) WHERE state = 'new';
    CREATE INDEX inbox_old ON inbox (at) WHERE state = 'done';

    CREATE TABLE outbox (
        seq INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        topic TEXT NOT NULL,
        op TEXT NOT NULL,
        payload BLOB NOT NULL,
        state TEXT NOT NULL,
        repeats INTEGER NOT NULL DEFAULT 0,
        msg_id TEXT NOT NULL DEFAULT '',
        why TEXT NOT NULL DEFAULT '',
        at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX outbox_open ON outbox (account, chat, topic, seq)
        WHERE state IN ('new', 'sending');
    CREATE INDEX outbox_old ON outbox (at) WHERE state IN ('sent', 'dead', 'uncertain');
    CREATE INDEX outbox_odd ON outbox (account, state) WHERE state IN ('dead', 'uncertain');
    CREATE INDEX outbox_again ON outbox (account, op) WHERE repeats > 0;

    CREATE TABLE msgmap (
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        msg_id TEXT NOT NULL,
        topic TEXT NOT NULL,
        conversation TEXT NOT NULL,
        event_id TEXT NOT NULL,
        part INTEGER NOT NULL,
        PRIMARY KEY (account, chat, msg_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX msgmap_by_event ON msgmap (conversation, event_id);

    CREATE TABLE person (
        account TEXT NOT NULL,
        user_id TEXT NOT NULL,
        role TEXT NOT NULL,
        agents TEXT NOT NULL,
        name TEXT NOT NULL,
        added INTEGER NOT NULL,
        revoked INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (account, user_id)
    ) STRICT, WITHOUT ROWID;

    -- A code works once; `used_in` is the update that used it, which may be dealt with again.
    CREATE TABLE paircode (
        hash BLOB PRIMARY KEY,
        account TEXT NOT NULL,
        role TEXT NOT NULL,
        agents TEXT NOT NULL,
        conversation TEXT NOT NULL,
        expires INTEGER NOT NULL,
        used_by TEXT NOT NULL DEFAULT '',
        used_in TEXT NOT NULL DEFAULT '',
        first INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE gate (
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (account, chat)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE audit (
        n INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        account TEXT NOT NULL,
        who TEXT NOT NULL,
        what TEXT NOT NULL,
        detail TEXT NOT NULL
    ) STRICT;

    -- What a button under a message stands for: the app knows only the id. Buttons of one sheet
    -- are one choice. `used` is the update that pressed it.
    CREATE TABLE button (
        id TEXT PRIMARY KEY,
        account TEXT NOT NULL,
        person TEXT NOT NULL,
        sheet TEXT NOT NULL,
        action BLOB NOT NULL,
        used TEXT NOT NULL DEFAULT '',
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX button_by_sheet ON button (sheet) WHERE sheet != '';
    CREATE INDEX button_old ON button (at);

    -- Of an update, a step that the node would take twice: '' when it was begun, then its result.
    CREATE TABLE step (
        key TEXT PRIMARY KEY,
        result TEXT NOT NULL,
        at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX step_by_result ON step (result);
    CREATE INDEX step_old ON step (at);

    -- What an agent wants to know: the next message of that person in that place is the answer.
    CREATE TABLE question (
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        topic TEXT NOT NULL,
        question TEXT NOT NULL,
        conversation TEXT NOT NULL,
        request TEXT NOT NULL,
        reply TEXT NOT NULL,
        agent TEXT NOT NULL,
        person TEXT NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (account, chat, topic, question)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE mute (
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        topic TEXT NOT NULL,
        until INTEGER NOT NULL,
        missed INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (account, chat, topic)
    ) STRICT, WITHOUT ROWID;
    """,
)
