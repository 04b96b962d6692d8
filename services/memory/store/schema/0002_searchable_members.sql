-- Members of merges are searched by their vectors again: the index is told everything once more.
UPDATE meta SET value = '0' WHERE key = 'vectors';
