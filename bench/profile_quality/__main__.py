"""``python -m bench.profile_quality [--misses] [--sample N] [--quick]``."""

from bench.profile_quality import main

main()
