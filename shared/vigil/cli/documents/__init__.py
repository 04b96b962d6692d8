"""Files of a person that become memories (`vigil memory import`)."""
