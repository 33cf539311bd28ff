"""Where operations are kept: the protocol that a store meets, and the stores that meet it."""
