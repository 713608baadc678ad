"""Ray jobs: nightly maintenance, bulk import, re-embedding, evaluation."""
