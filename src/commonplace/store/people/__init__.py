"""People: their libraries and tokens, sign-in, memberships, OAuth grants."""
