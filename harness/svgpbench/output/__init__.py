"""Tables and figures: their kinds, and how they are laid out, drawn and written."""
