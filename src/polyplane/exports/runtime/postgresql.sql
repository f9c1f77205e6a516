-- How cells are read in PostgreSQL, in which invalid casts and exponentials that underflow are errors. CELL is an
-- expression.

-- @ whitespace
chr(9) || chr(10) || chr(11) || chr(12) || chr(13) || chr(28) || chr(29) || chr(30) || chr(31) || chr(32)
     || chr(133) || chr(160) || chr(5760) || chr(8192) || chr(8193) || chr(8194) || chr(8195) || chr(8196) || chr(8197) || chr(8198)
     || chr(8199) || chr(8200) || chr(8201) || chr(8202) || chr(8232) || chr(8233) || chr(8239) || chr(8287) || chr(12288)

-- @ text
CASE WHEN pg_typeof(CELL) IN ('timestamp'::regtype, 'timestamptz'::regtype)
     THEN regexp_replace(to_char(CAST(regexp_replace(CAST(CELL AS text), '[+-][0-9:]+$', '') AS timestamp), 'YYYY-MM-DD HH24:MI:SS.US'),
          '( 00:00:00)?\.000000$', '')
     WHEN lower(btrim(CAST(CELL AS text), w.characters)) IN ('true', 'false') THEN lower(btrim(CAST(CELL AS text), w.characters))
     ELSE btrim(CAST(CELL AS text), w.characters) END

-- @ category
CASE WHEN pg_typeof(CELL) IN ('double precision'::regtype, 'real'::regtype, 'numeric'::regtype) THEN
          CASE WHEN CELL IS NULL OR CAST(CAST(CELL AS text) AS double precision) = 'NaN' THEN NULL
               WHEN abs(CAST(CAST(CELL AS text) AS double precision)) < 9007199254740992.0 AND CAST(CAST(CELL AS text) AS double precision) = floor(CAST(CAST(CELL AS text) AS double precision))
               THEN CAST(CAST(CAST(CAST(CELL AS text) AS double precision) AS BIGINT) AS text)LEVELS
               ELSE ' ' END
     ELSE STRING END

-- @ level
CAST(CAST(CELL AS text) AS double precision)

-- @ number
CAST(CELL AS double precision)

-- @ comma
CAST(replace(CAST(CELL AS text), ',', '.') AS double precision)

-- @ boolean
CASE WHEN lower(CELL) IN ('true', 't', 'yes', 'y', '1', 'on') THEN 1.0
     WHEN lower(CELL) IN ('false', 'f', 'no', 'n', '0', 'off') THEN 0.0 END

-- @ missing
CELL IS NULL OR CAST(CELL AS double precision) = 'NaN'

-- @ timestamp
CASE WHEN CELL ~ '^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d{1,9})?)?)?( ?(Z|[+-]\d{2}:?\d{2}))?$'
     THEN CASE WHEN CAST(substr(CELL, 9, 2) AS integer) <= extract(day FROM
                    CAST(substr(CELL, 1, 7) || '-01' AS date) + interval '1 month' - interval '1 day')
          THEN CAST(regexp_replace(replace(CELL, ',', '.'), '^(.{10}([T ][0-9:.]+)?).*$', '\1') AS TIMESTAMP) END END

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
exp(greatest(CELL, -700.0))
