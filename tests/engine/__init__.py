"""The real engine: vLLM on this machine's CPU, with a model small enough for a package index, on a real Ray cluster."""
