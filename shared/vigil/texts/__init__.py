"""What becomes of texts that are too long for whoever reads them."""
