"""What the tests share: a real broker, real services, records to publish."""
