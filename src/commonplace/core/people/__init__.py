"""Accounts, tokens, members, sign-in, and access checks."""
