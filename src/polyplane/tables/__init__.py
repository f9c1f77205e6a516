"""Tables as they come: text, booleans, dates, gaps and numbers of any scale."""
