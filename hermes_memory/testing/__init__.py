"""What tests of this library and of its adapters are made of: suites, fakes, builders, simulated time."""
