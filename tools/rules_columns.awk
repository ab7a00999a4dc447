# Columns of a result are read by their names, which are generated beside the query: row[columns::epoch], not row[3].
# The first file lists files and folders (`src/x/`) that still go by number; each must have such a line, so that the
# list can only shrink. The demo writes SQL as users do and is free.
function listed_as(path,   entry) {
  for (entry in left)
    if (path == entry || (entry ~ /\/$/ && index(path, entry) == 1)) return entry
  return ""
}
FNR == 1 { in_list = FILENAME ~ /rules_columns\.txt$/ || FILENAME == "/dev/null" }
in_list { if ($0 !~ /^#/ && NF > 0) left[$1] = 1; next }
/^[ \t]*\/\// || FILENAME ~ /^demo\// { next }
/\]\[[0-9]+\]([^[]|$)|[a-z_]\[[0-9]+\]\.(integer|text|time|bytes|real|boolean|is_null)\(|(take|cell)\([a-z_0-9]+, [0-9]+\)/ {
  entry = listed_as(FILENAME)
  if (entry != "") { found[entry] = 1; next }
  printf "%s:%d: a column is read by its number; use the name that is generated beside the query\n", FILENAME, FNR
  broken = 1
}
END {
  for (entry in left)
    if (!(entry in found)) {
      printf "tools/rules_columns.txt: %s reads no column by number any more: take it out\n", entry
      broken = 1
    }
  exit broken
}
