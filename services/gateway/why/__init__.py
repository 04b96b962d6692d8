"""Why was something said, or not? The chain of causes, read from the log and told (SPEC D-3).

`facts` and `deeds` keep of a record what a story needs, `chain` walks from record to record,
`stories` says which way, `story` is what comes of it. `steps` and `answer` make sentences of it, by
the templates of `text` and the words of `vigil.contracts`: pure, so a story can be tested without a
broker. `search` turns an id into a place in the log and `reader` answers what the chain asks;
those two are the shell. Nothing is stored for this: whatever happened can be asked about, also what
happened before this was written.
"""
