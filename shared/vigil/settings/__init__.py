"""What an installation is configured with: settings, credentials, tokens, hot switches."""
