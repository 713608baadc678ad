"""``make eval-vllm``: turns of the public data extracted by a real engine behind its Serve deployment.

The model of the tests is far too small to extract well: it babbles. What is shown is that every answer is counted and
handled, that nothing ungrounded reaches the store whatever it says, that nothing is lost or doubled, and what it takes.
Run by the engine's own interpreter (``make engine-install``).
"""
