"""One module per provider: pure functions from operation to request, and from answer to meaning.

What an adapter is, and the words it answers in, are in ``reference_client.adapters.protocol``.
"""
