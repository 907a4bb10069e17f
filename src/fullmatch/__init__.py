"""Semi-supervised image classification: FullMatch and its peers, in PyTorch."""

__version__ = "0.1.0"
