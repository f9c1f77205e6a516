-- How cells are read in SQLite, in which values have types, not columns, and which has neither dates nor regular
-- expressions. CELL is an expression.

-- @ whitespace
char(9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 133, 160, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198, 8199, 8200,
     8201, 8202, 8232, 8233, 8239, 8287, 12288)

-- @ trim
trim(CELL, w.characters)

-- @ text
CAST(CELL AS TEXT)

-- @ whole text
CASE typeof(CELL) WHEN 'real' THEN printf('%.15g', CELL) ELSE CAST(CELL AS TEXT) END

-- @ number
CASE WHEN typeof(CELL) IN ('integer', 'real') THEN CELL + 0.0
     WHEN typeof(CELL) = 'text' AND trim(CELL, w.characters) GLOB '*[0-9]*'
          AND trim(CELL, w.characters) NOT GLOB '*[^-+.eE0-9]*' THEN CAST(trim(CELL, w.characters) AS REAL) END

-- @ comma
CASE WHEN typeof(CELL) IN ('integer', 'real') THEN CELL + 0.0
     WHEN typeof(CELL) = 'text' AND trim(CELL, w.characters) GLOB '*[0-9]*'
          AND trim(CELL, w.characters) NOT GLOB '*[^-+.,eE0-9]*'
     THEN CAST(replace(trim(CELL, w.characters), ',', '.') AS REAL) END

-- @ boolean
CASE WHEN lower(trim(CAST(CELL AS TEXT), w.characters)) IN ('true', 't', 'yes', 'y', '1', '1.0', 'on') THEN 1.0
     WHEN lower(trim(CAST(CELL AS TEXT), w.characters)) IN ('false', 'f', 'no', 'n', '0', '0.0', 'off') THEN 0.0 END

-- @ missing
CELL IS NULL

-- @ timestamp
CASE WHEN julianday(substr(CELL, 1, 10)) IS NOT NULL THEN CELL END

-- @ days
julianday(substr(CELL, 1, 10)) - 2440587.5
     + CASE WHEN substr(CELL, 11, 1) IN ('T', ' ') AND substr(CELL, 14, 1) = ':'
            THEN CAST(substr(CELL, 12, 2) AS REAL) / 24.0 + CAST(substr(CELL, 15, 2) AS REAL) / 1440.0
                 + CASE WHEN substr(CELL, 17, 1) = ':'
                        THEN CAST(replace(substr(CELL, 18), ',', '.') AS REAL) / 86400.0 ELSE 0.0 END
            ELSE 0.0 END

-- @ year
CAST(substr(CELL, 1, 4) AS REAL)

-- @ month
CAST(substr(CELL, 6, 2) AS REAL)

-- @ day of week
(strftime('%w', substr(CELL, 1, 10)) + 6) % 7 + 1.0

-- @ hour
CASE WHEN substr(CELL, 11, 1) IN ('T', ' ') AND substr(CELL, 14, 1) = ':'
     THEN CAST(substr(CELL, 12, 2) AS REAL) ELSE 0.0 END

-- @ exponential
exp(CELL)
