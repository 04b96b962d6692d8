"""What a model may call, and where a call goes."""
