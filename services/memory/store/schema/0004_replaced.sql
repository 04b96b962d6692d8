-- By what memories are found that may say the same, or another value of the same: what `said_keys` of
-- their content returned. What was forgotten has none.
CREATE TABLE said (
    scope INTEGER NOT NULL REFERENCES scopes,
    key TEXT NOT NULL,
    num INTEGER NOT NULL REFERENCES memories,
    PRIMARY KEY (scope, key, num)
) STRICT, WITHOUT ROWID;
CREATE INDEX said_by_num ON said (num);
INSERT INTO said (scope, key, num)
    SELECT m.scope, k.value, m.num
    FROM memories m JOIN scopes s USING (scope),
        json_each(said_keys(m.content, m.type, s.owner)) k
    WHERE m.ended IS NOT 'forgotten';

-- Which memory took the place of which, also over several steps, and after that was undone.
-- is_same: it says the same; else the newer says how it is now.
CREATE TABLE replaced (
    scope INTEGER NOT NULL REFERENCES scopes,
    newer INTEGER NOT NULL REFERENCES memories,
    older INTEGER NOT NULL REFERENCES memories,
    is_same INTEGER NOT NULL,
    PRIMARY KEY (newer, older)
) STRICT, WITHOUT ROWID;
CREATE INDEX replaced_back ON replaced (older);
