"""Where commands run that nobody vouches for: in a box with a folder, and little else."""
