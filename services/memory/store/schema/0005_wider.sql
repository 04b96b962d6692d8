-- is_wider: the newer says what the older does, and more.
ALTER TABLE replaced ADD COLUMN is_wider INTEGER NOT NULL DEFAULT 0;
-- What is stored already is found by each of its sentences, too.
INSERT INTO said (scope, key, num)
    SELECT m.scope, k.value, m.num
    FROM memories m JOIN scopes s USING (scope),
        json_each(said_keys(m.content, m.type, s.owner)) k
    WHERE m.ended IS NOT 'forgotten'
    ON CONFLICT DO NOTHING;
