-- What is made of MEMORIES. Instants are microseconds since 1970, UTC. Nothing here is the truth: all
-- of it can be made again from the log, and comes out the same.

-- position: the last sequence of MEMORIES that is in here; vectors: the last one whose vectors are in
-- the index; embedder: what the vectors were made with; log: which MEMORIES it was made of.
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE scopes (
    scope INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    owner TEXT NOT NULL,
    -- The association pass has looked at what was saved up to here.
    looked_through INTEGER NOT NULL DEFAULT 0,
    UNIQUE (agent, owner)
) STRICT;

CREATE TABLE memories (
    -- The sequence of the record that saved it: the same in every replica and after every rebuild.
    num INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL REFERENCES scopes,
    id TEXT NOT NULL,
    -- The last record that changed what the vector index must know.
    changed_seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    importance REAL NOT NULL,
    source TEXT NOT NULL,
    stability TEXT NOT NULL,
    thread TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    occurred_at INTEGER,
    -- occurred_at, or created_at if that isn't known: what time means in filters and orders.
    happened_at INTEGER NOT NULL,
    expires_at INTEGER,
    valid_from INTEGER,
    valid_to INTEGER,
    is_tainted INTEGER NOT NULL,
    accessed_at INTEGER,
    accesses INTEGER NOT NULL DEFAULT 0,
    -- The sum of the weights of its edges whose both ends stand.
    centrality REAL NOT NULL DEFAULT 0,
    -- When it ceased to stand. 0 if somebody asked to forget it: no question finds it then, whatever
    -- moment it is about, and content, text and vector are gone.
    ended_at INTEGER,
    ended TEXT,
    superseded_by TEXT,
    provenance TEXT NOT NULL,
    content TEXT NOT NULL,
    UNIQUE (scope, id)
) STRICT;
CREATE INDEX memories_in_scope ON memories (scope);
CREATE INDEX memories_by_time ON memories (scope, happened_at);
CREATE INDEX memories_by_source ON memories (scope, source, happened_at);
CREATE INDEX memories_by_type ON memories (scope, type, happened_at);
CREATE INDEX memories_by_thread ON memories (scope, thread, happened_at, num) WHERE thread <> '';
CREATE INDEX memories_by_access ON memories (scope, accesses);
-- Holds all that decay is made of: sorting by it reads nothing else.
CREATE INDEX memories_by_worth ON memories (
    scope, ended_at, type, importance, created_at, accessed_at, expires_at
);
CREATE INDEX memories_by_centrality ON memories (scope, centrality) WHERE centrality > 0;
CREATE INDEX memories_by_change ON memories (changed_seq);

-- Apart from the memories, so that reading those doesn't drag these along.
-- words: the distinct WordLlama tokens, uint32[]; vector: float32[dimension], unit norm, or none yet;
-- terms: what the full text was given, without which nothing can be taken out of it again.
CREATE TABLE features (
    num INTEGER PRIMARY KEY REFERENCES memories,
    words BLOB NOT NULL,
    vector BLOB,
    terms TEXT NOT NULL
) STRICT;

CREATE TABLE edges (
    scope INTEGER NOT NULL REFERENCES scopes,
    from_num INTEGER NOT NULL REFERENCES memories,
    to_num INTEGER NOT NULL REFERENCES memories,
    relation TEXT NOT NULL,
    weight REAL NOT NULL,
    PRIMARY KEY (from_num, to_num, relation)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_back ON edges (to_num);

-- Which memories were made of what (an event or a memory), for undo.
CREATE TABLE provenance (
    scope INTEGER NOT NULL REFERENCES scopes,
    of_id TEXT NOT NULL,
    num INTEGER NOT NULL REFERENCES memories,
    PRIMARY KEY (scope, of_id, num)
) STRICT, WITHOUT ROWID;

-- Which summaries contain which memories word for word, also after such a merge was undone.
CREATE TABLE merges (
    scope INTEGER NOT NULL REFERENCES scopes,
    summary INTEGER NOT NULL REFERENCES memories,
    member INTEGER NOT NULL REFERENCES memories,
    PRIMARY KEY (summary, member)
) STRICT, WITHOUT ROWID;
CREATE INDEX merges_back ON merges (member);

-- Full text is one table a scope, made with the scope: `text_{scope}`. So one owner's words never
-- change the ranks of another's, and erasing an owner drops their table.
