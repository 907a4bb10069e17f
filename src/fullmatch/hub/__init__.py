"""Models on the Hugging Face hub: what is shared, sending it there, and using it from there."""
