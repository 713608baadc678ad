-- One user's rows hang on users.uid; a tombstone and its hashed operation ids are all an erasure leaves.
-- Bodies are JSON of the domain's dataclasses. Times in *_us are microseconds since 1970 UTC.

CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS leases (
    epoch INTEGER PRIMARY KEY, host TEXT NOT NULL UNIQUE, until_us INTEGER NOT NULL
);

-- AUTOINCREMENT: the number of an erased user is never given to another one.
CREATE TABLE IF NOT EXISTS users (
    uid INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,  -- str(UserKey)
    version INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    owner_epoch INTEGER NOT NULL,
    settings TEXT
);

-- accesses and accessed_us (0: never) live beside the body, so that counting a recall rewrites no memory.
CREATE TABLE IF NOT EXISTS memories (
    number INTEGER PRIMARY KEY,
    uid INTEGER NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL CHECK (json_valid(body)),
    accesses INTEGER NOT NULL DEFAULT 0,
    accessed_us INTEGER NOT NULL DEFAULT 0,
    lock TEXT GENERATED ALWAYS AS (json_extract(body, '$.lock')) VIRTUAL,
    content TEXT GENERATED ALWAYS AS (json_extract(body, '$.content')) VIRTUAL,
    meaning TEXT GENERATED ALWAYS AS (json_extract(body,
        '$.id', '$.namespace', '$.user_id',
        '$.category', '$.layer', '$.subject', '$.predicate', '$.object', '$.dimension', '$.polarity',
        '$.content', '$.scope', '$.scene', '$.tier', '$.lock', '$.status', '$.safety',
        '$.valid_from', '$.valid_to')) VIRTUAL,
    UNIQUE (uid, id)
);

-- What the running transaction may do to frozen rows; empty outside a transaction.
CREATE TABLE IF NOT EXISTS grants (
    uid INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, PRIMARY KEY (uid, id, kind)
) WITHOUT ROWID;

-- The meaning is computed from the body by the store itself, so no stored digest can be forged. A body that
-- names a key twice, or escapes a key, could show SQLite one value and a reader another: refused as well.
CREATE TRIGGER IF NOT EXISTS frozen_update BEFORE UPDATE ON memories
WHEN OLD.lock = 'frozen'
    AND (OLD.meaning IS NOT NEW.meaning
        OR EXISTS (SELECT 1 FROM json_each(NEW.body) GROUP BY key HAVING count(*) > 1 OR instr(key, '\')))
    AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.uid = OLD.uid AND g.id = OLD.id AND g.kind = 'unfreeze')
BEGIN SELECT RAISE(ABORT, 'memory_frozen'); END;

CREATE TRIGGER IF NOT EXISTS frozen_delete BEFORE DELETE ON memories
WHEN OLD.lock = 'frozen'
    AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.uid = OLD.uid AND g.id = OLD.id AND g.kind = 'erase')
BEGIN SELECT RAISE(ABORT, 'memory_frozen'); END;

-- REPLACE deletes without firing the delete trigger: an insert over a frozen row must keep its meaning.
CREATE TRIGGER IF NOT EXISTS frozen_insert BEFORE INSERT ON memories
WHEN EXISTS (
    SELECT 1 FROM memories m
    WHERE ((m.uid = NEW.uid AND m.id = NEW.id) OR m.number = NEW.number) AND m.lock = 'frozen'
        AND (m.uid <> NEW.uid OR m.id <> NEW.id OR m.meaning IS NOT NEW.meaning
            OR EXISTS (SELECT 1 FROM json_each(NEW.body) GROUP BY key HAVING count(*) > 1 OR instr(key, '\')))
        AND NOT EXISTS (SELECT 1 FROM grants g WHERE g.uid = m.uid AND g.id = m.id AND g.kind = 'unfreeze'))
BEGIN SELECT RAISE(ABORT, 'memory_frozen'); END;

-- Nor may another row take a frozen one's place.
CREATE TRIGGER IF NOT EXISTS memory_identity BEFORE UPDATE OF number, uid, id ON memories
WHEN OLD.number IS NOT NEW.number OR OLD.uid IS NOT NEW.uid OR OLD.id IS NOT NEW.id
BEGIN SELECT RAISE(ABORT, 'memory_identity'); END;

CREATE TABLE IF NOT EXISTS vectors (
    uid INTEGER NOT NULL, id TEXT NOT NULL, vector BLOB NOT NULL,  -- little-endian fp16
    PRIMARY KEY (uid, id)
) WITHOUT ROWID;

-- Vectors of the next embedding model, until all are there and the two tables change places; then those of the
-- model before, until they are cleared away (since schema 2).
CREATE TABLE IF NOT EXISTS reembedded (
    uid INTEGER NOT NULL, id TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (uid, id)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS sessions (
    uid INTEGER NOT NULL, id TEXT NOT NULL, ended INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (uid, id)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS bindings (
    namespace TEXT NOT NULL, session_id TEXT NOT NULL, user_id TEXT NOT NULL,
    PRIMARY KEY (namespace, session_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS bindings_by_user ON bindings (namespace, user_id);

CREATE TABLE IF NOT EXISTS turns (
    number INTEGER PRIMARY KEY,
    uid INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    received_us INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (uid, session_id, position)
);
CREATE INDEX IF NOT EXISTS turns_pending ON turns (uid) WHERE pending = 1;
CREATE INDEX IF NOT EXISTS turns_done ON turns (received_us) WHERE pending = 0;

CREATE TABLE IF NOT EXISTS messages (
    uid INTEGER NOT NULL, session_id TEXT NOT NULL, message_id TEXT NOT NULL,
    content_hash TEXT NOT NULL, job_id TEXT NOT NULL,
    PRIMARY KEY (uid, session_id, message_id)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY,
    uid INTEGER NOT NULL, id TEXT NOT NULL, done INTEGER NOT NULL, body TEXT NOT NULL,
    UNIQUE (id, uid)
);
CREATE INDEX IF NOT EXISTS jobs_open ON jobs (uid) WHERE done = 0;
CREATE INDEX IF NOT EXISTS jobs_by_user ON jobs (uid);

CREATE TABLE IF NOT EXISTS audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, uid INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS audit_by_user ON audit (uid, seq);

CREATE TABLE IF NOT EXISTS alerts (
    id TEXT NOT NULL, uid INTEGER NOT NULL, open INTEGER NOT NULL DEFAULT 1, body TEXT NOT NULL,
    PRIMARY KEY (uid, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS alerts_open ON alerts (id) WHERE open = 1;

-- Keyed by the user's name, not number: the drop outlives the user until the index has it. reason: why the index
-- refused the entry, which then waits no more (since schema 3).
CREATE TABLE IF NOT EXISTS outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, op TEXT NOT NULL, memory_id TEXT NOT NULL,
    reason TEXT
);
CREATE INDEX IF NOT EXISTS outbox_by_user ON outbox (name);
CREATE INDEX IF NOT EXISTS outbox_waiting ON outbox (name) WHERE reason IS NULL;
CREATE INDEX IF NOT EXISTS outbox_buried ON outbox (name) WHERE reason IS NOT NULL;

CREATE TABLE IF NOT EXISTS operations (
    uid INTEGER NOT NULL, id TEXT NOT NULL, at_us INTEGER NOT NULL, version INTEGER NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (uid, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS operations_by_time ON operations (at_us);

CREATE TABLE IF NOT EXISTS tombstones (
    user_hash TEXT PRIMARY KEY, version INTEGER NOT NULL, generation INTEGER NOT NULL,
    owner_epoch INTEGER NOT NULL
) WITHOUT ROWID;

-- erasure: the counts an erasing operation answered with; NULL for a commit that was erased.
CREATE TABLE IF NOT EXISTS erased_operations (
    operation_hash TEXT PRIMARY KEY, at_us INTEGER NOT NULL, version INTEGER NOT NULL, erasure TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS erased_operations_by_time ON erased_operations (at_us);

-- General knowledge that a namespace shares; nobody's. vectors: those of its passages in order, little-endian fp16.
CREATE TABLE IF NOT EXISTS packs (
    namespace TEXT NOT NULL, name TEXT NOT NULL, loaded_us INTEGER NOT NULL,
    body TEXT NOT NULL CHECK (json_valid(body)), vectors BLOB NOT NULL,
    PRIMARY KEY (namespace, name)
);

-- Likewise vectors of the next model, of passages in a row: the first of them is number start of its pack.
CREATE TABLE IF NOT EXISTS reembedded_packs (
    namespace TEXT NOT NULL, name TEXT NOT NULL, start INTEGER NOT NULL, vectors BLOB NOT NULL,
    PRIMARY KEY (namespace, name, start)
);

-- What was counted of a user by day, beside the version.
CREATE TABLE IF NOT EXISTS tallies (
    uid INTEGER NOT NULL, day TEXT NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (uid, day, name)
) WITHOUT ROWID;

-- What jobs leave for later, and what an operator should know of a namespace as a whole.
CREATE TABLE IF NOT EXISTS notes (
    namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS namespace_alerts (
    namespace TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (namespace, id)
) WITHOUT ROWID;
