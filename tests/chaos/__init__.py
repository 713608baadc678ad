"""The fault campaign: a running load, injected faults, and the check that nothing acknowledged was harmed."""
