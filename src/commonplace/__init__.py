"""Commonplace: the knowledge base that people and their agents share."""

import os

# Before numpy is imported: our products are small, and the threads that BLAS would keep spinning
# for them cost more than they bring (a search took twice the processor time).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
