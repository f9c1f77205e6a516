"""Raw tables: text, booleans, dates, missing values and numbers of any scale."""
