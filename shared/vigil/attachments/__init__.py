"""Images and PDF files that people attach to messages: what is taken, and where it is kept."""
