-- In how many memories of a scope each token of the word model stands, up to some memory, so that the
-- first recall after a start doesn't count them all. tokens: uint32[], by token.
CREATE TABLE counts (
    scope INTEGER PRIMARY KEY REFERENCES scopes,
    through INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    tokens BLOB NOT NULL
) STRICT;
ALTER TABLE scopes ADD COLUMN uncounted INTEGER NOT NULL DEFAULT 0;
UPDATE scopes SET uncounted = (SELECT count(*) FROM memories m WHERE m.scope = scopes.scope);
