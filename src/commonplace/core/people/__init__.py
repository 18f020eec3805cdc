"""Who is asking and what they may do: accounts, tokens, members, sign-in."""
