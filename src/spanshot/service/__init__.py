"""The HTTP service, ``spanshot serve``, and its Python client. Needs the extra ``[serve]``; the client ``[client]``."""
