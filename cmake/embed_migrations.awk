# Turns NNNN_name.sql files into a header with one array of settle::sql::migration.
BEGIN {
  print "// Generated from .sql files; do not edit."
  print "#pragma once"
  print "#include \"sql/migrations.hpp\"\n"
  print "namespace settle::migrations {\n"
  print "inline constexpr sql::migration " set "[] = {"
}
FNR == 1 {
  if (NR > 1) print ")sql\"},"
  file = FILENAME; sub(/.*\//, "", file); sub(/\.sql$/, "", file)
  number = file + 0; name = file; sub(/^[0-9]+_/, "", name)
  printf "  {%d, \"%s\", R\"sql(", number, name
}
{ print }
END { print ")sql\"},\n};\n\n}  // namespace settle::migrations" }
