"""What Commonplace concludes from real text, measured on the development sets."""
