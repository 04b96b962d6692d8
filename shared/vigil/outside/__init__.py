"""Programs outside of Vigil that come to the bus, each by a credential of its own."""
