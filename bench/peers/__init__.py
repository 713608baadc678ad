"""What runs in the peers' own environment: another memory layer, and a real tokenizer. It imports nothing of the product."""
