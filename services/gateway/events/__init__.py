"""Events of other systems: CloudEvents over HTTP and on the bus, and webhooks."""
