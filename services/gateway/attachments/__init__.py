"""Files that messages name: upload, download, and keeping them."""
