-- How cells are read in SQLite, in which values have types, not columns, and which has neither dates nor regular
-- expressions. CELL is an expression.

-- @ whitespace
char(9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 133, 160, 5760, 8192, 8193, 8194, 8195, 8196, 8197, 8198, 8199, 8200,
     8201, 8202, 8232, 8233, 8239, 8287, 12288)

-- @ text
CASE WHEN lower(trim(CAST(CELL AS TEXT), w.characters)) IN ('true', 'false') THEN lower(trim(CAST(CELL AS TEXT), w.characters))
     ELSE trim(CAST(CELL AS TEXT), w.characters) END

-- @ category
CASE typeof(CELL) WHEN 'real' THEN
          CASE WHEN abs(CELL) < 9007199254740992.0 AND CELL = CAST(CELL AS INTEGER)
               THEN CAST(CAST(CELL AS INTEGER) AS TEXT)LEVELS
               ELSE ' ' END
     ELSE STRING END

-- @ level
CELL

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
CASE WHEN lower(CELL) IN ('true', 't', 'yes', 'y', '1', 'on') THEN 1.0
     WHEN lower(CELL) IN ('false', 'f', 'no', 'n', '0', 'off') THEN 0.0 END

-- @ missing
CELL IS NULL

-- @ timestamp
-- A date and a time of the same length for all, with the digits of the seconds that count, or NULL.
(SELECT CASE WHEN date(day, '+0 days') = day AND day GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'
          AND (length(time) IN (0, 6, 9) OR length(time) BETWEEN 11 AND 19)
          AND whole GLOB '[T ][0-2][0-9]:[0-5][0-9]:[0-5][0-9][.,][0-9]*' AND substr(whole, 2, 2) < '24'
          AND substr(whole, 11) NOT GLOB '*[^0-9]*' THEN day || replace(substr(whole, 1, 16), ',', '.') END
 FROM (SELECT day, time, time || substr('T00:00:00.0', length(time) + 1) AS whole
       FROM (SELECT day, CASE
                    WHEN rest GLOB '* Z' THEN substr(rest, 1, length(rest) - 2)
                    WHEN rest GLOB '* [-+][0-9][0-9][0-9][0-9]' THEN substr(rest, 1, length(rest) - 6)
                    WHEN rest GLOB '* [-+][0-9][0-9]:[0-9][0-9]' THEN substr(rest, 1, length(rest) - 7)
                    WHEN rest GLOB '*Z' THEN substr(rest, 1, length(rest) - 1)
                    WHEN rest GLOB '*[-+][0-9][0-9][0-9][0-9]' THEN substr(rest, 1, length(rest) - 5)
                    WHEN rest GLOB '*[-+][0-9][0-9]:[0-9][0-9]' THEN substr(rest, 1, length(rest) - 6)
                    ELSE rest END AS time
             FROM (SELECT substr(CELL, 1, 10) AS day, substr(CELL, 11) AS rest))))

-- @ days
julianday(substr(CELL, 1, 10)) - 2440587.5 + CAST(substr(CELL, 12, 2) AS REAL) / 24.0
     + CAST(substr(CELL, 15, 2) AS REAL) / 1440.0 + CAST(substr(CELL, 18) AS REAL) / 86400.0

-- @ year
CAST(substr(CELL, 1, 4) AS REAL)

-- @ month
CAST(substr(CELL, 6, 2) AS REAL)

-- @ day of week
(strftime('%w', substr(CELL, 1, 10)) + 6) % 7 + 1.0

-- @ hour
CAST(substr(CELL, 12, 2) AS REAL)

-- @ exponential
exp(CELL)
