"""Tables and figures: their kinds, layout, drawing and files."""
