# Turns .sql files with `-- name: x` markers into a header of settle::query constants.
# The dialect is the folder that a file lies in: sqlite or postgres.
FNR == 1 { current = ""; dialect = FILENAME ~ /\/postgres\// ? "postgres" : "sqlite" }
/^-- name: / {
  current = $3
  if (!(current in seen)) { seen[current] = 1; order[++count] = current }
  next
}
current != "" && !/^[ \t]*--/ && !/^[ \t]*$/ { text[current, dialect] = text[current, dialect] $0 "\n" }
END {
  print "// Generated from .sql files; do not edit."
  print "#pragma once"
  print "#include \"settle/database.hpp\"\n"
  print "namespace settle::queries::" capability " {\n"
  for (i = 1; i <= count; i++) {
    n = order[i]
    printf "inline constexpr query %s{\"%s.%s\", R\"sql(%s)sql\", R\"sql(%s)sql\"};\n", \
      n, capability, n, text[n, "sqlite"], text[n, "postgres"]
  }
  print "\n}  // namespace settle::queries::" capability
}
