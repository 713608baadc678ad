"""What the application needs from the outside, as Protocols. Ports are async; the core is sync."""
