"""Images, PDF files and texts that people attach: what is taken, and where it is kept."""
