"""The paper's tables and figures: which runs they need, what came out, and what the paper says."""
