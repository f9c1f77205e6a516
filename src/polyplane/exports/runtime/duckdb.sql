-- How cells are read in DuckDB. CELL is an expression.

-- @ whitespace
chr(9) || chr(10) || chr(11) || chr(12) || chr(13) || chr(28) || chr(29) || chr(30) || chr(31) || chr(32)
     || chr(133) || chr(160) || chr(5760) || chr(8192) || chr(8193) || chr(8194) || chr(8195) || chr(8196) || chr(8197) || chr(8198)
     || chr(8199) || chr(8200) || chr(8201) || chr(8202) || chr(8232) || chr(8233) || chr(8239) || chr(8287) || chr(12288)

-- @ text
CASE WHEN typeof(CELL) LIKE 'TIMESTAMP%'
     THEN regexp_replace(strftime(TRY_CAST(regexp_replace(CAST(CELL AS VARCHAR), '[+-][0-9:]+$', '') AS TIMESTAMP), '%Y-%m-%d %H:%M:%S.%f'),
          '( 00:00:00)?\.000000$', '')
     WHEN lower(trim(CAST(CELL AS VARCHAR), w.characters)) IN ('true', 'false') THEN lower(trim(CAST(CELL AS VARCHAR), w.characters))
     ELSE trim(CAST(CELL AS VARCHAR), w.characters) END

-- @ category
CASE WHEN typeof(CELL) IN ('DOUBLE', 'FLOAT') OR typeof(CELL) LIKE 'DECIMAL%' THEN
          CASE WHEN CELL IS NULL OR isnan(TRY_CAST(CELL AS DOUBLE)) THEN NULL
               WHEN abs(TRY_CAST(CELL AS DOUBLE)) < 9007199254740992.0 AND TRY_CAST(CELL AS DOUBLE) = floor(TRY_CAST(CELL AS DOUBLE))
               THEN CAST(CAST(TRY_CAST(CELL AS DOUBLE) AS BIGINT) AS VARCHAR)LEVELS
               ELSE ' ' END
     ELSE STRING END

-- @ level
TRY_CAST(CELL AS DOUBLE)

-- @ number
TRY_CAST(CELL AS DOUBLE)

-- @ comma
TRY_CAST(replace(CAST(CELL AS VARCHAR), ',', '.') AS DOUBLE)

-- @ boolean
CASE WHEN lower(CELL) IN ('true', 't', 'yes', 'y', '1', 'on') THEN 1.0
     WHEN lower(CELL) IN ('false', 'f', 'no', 'n', '0', 'off') THEN 0.0 END

-- @ missing
CELL IS NULL OR isnan(TRY_CAST(CELL AS DOUBLE))

-- @ timestamp
CASE WHEN regexp_matches(CELL, '^\d{4}-\d{2}-\d{2}([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d{1,9})?)?)?( ?(Z|[+-]\d{2}:?\d{2}))?$')
     THEN TRY_CAST(regexp_replace(replace(CELL, ',', '.'), '^(.{10}([T ][0-9:.]+)?).*$', '\1') AS TIMESTAMP) END

-- @ days
CAST(extract(epoch FROM CELL) AS DOUBLE PRECISION) / 86400.0

-- @ year
CAST(extract(year FROM CELL) AS DOUBLE PRECISION)

-- @ month
CAST(extract(month FROM CELL) AS DOUBLE PRECISION)

-- @ day of week
CAST(extract(isodow FROM CELL) AS DOUBLE PRECISION)

-- @ hour
CAST(extract(hour FROM CELL) AS DOUBLE PRECISION)

-- @ exponential
exp(CELL)
