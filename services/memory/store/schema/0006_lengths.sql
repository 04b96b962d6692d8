-- How many letters full text was given of each. A table of its own: for a question thousands are read,
-- and a row of features has 1 kB.
CREATE TABLE lengths (
    num INTEGER PRIMARY KEY REFERENCES memories,
    letters INTEGER NOT NULL
) STRICT;
INSERT INTO lengths (num, letters) SELECT num, length(terms) FROM features;
CREATE TRIGGER features_made AFTER INSERT ON features BEGIN
    INSERT INTO lengths (num, letters) VALUES (new.num, length(new.terms));
END;
CREATE TRIGGER features_gone AFTER DELETE ON features BEGIN
    DELETE FROM lengths WHERE num = old.num;
END;
