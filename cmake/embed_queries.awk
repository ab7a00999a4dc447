# Turns .sql files with `-- name: x` markers into a header of settle::query constants, and beside each query that
# answers with rows the numbers of its columns under their names: queries::outbox::read_identity_columns::generation.
# The dialect is the folder that a file lies in: sqlite or postgres.
#
# A column is called as in the select list (or what follows `returning`): `share`, `o.share`, `count(*) as waiting`.
# If one has no name, the query gets no names, and a comment in the header says why. The lists of both dialects
# must agree, unless one of them answers with no rows at all; otherwise the build stops with a message.
FNR == 1 { current = ""; dialect = FILENAME ~ /\/postgres\// ? "postgres" : "sqlite" }
/^-- name: / {
  current = $3
  if (!(current in seen)) { seen[current] = 1; order[++count] = current }
  next
}
current != "" && !/^[ \t]*--/ && !/^[ \t]*$/ { text[current, dialect] = text[current, dialect] $0 "\n" }

# The statement without the contents of its literals, so that no quote, comma or bracket in them misleads.
function without_literals(sql,   made, rest, at) {
  made = ""
  rest = sql
  while ((at = index(rest, "'")) > 0) {
    made = made substr(rest, 1, at - 1) "0"
    rest = substr(rest, at + 1)
    at = index(rest, "'")
    if (at == 0) return made
    rest = substr(rest, at + 1)
  }
  gsub(/[ \t\n]+/, " ", rest)
  made = made rest
  gsub(/[ \t\n]+/, " ", made)
  return made
}

# Sets list[1..n] to the columns that the statement answers with; returns n, 0 if it answers with none.
function find_columns(sql, list,   i, c, word, depth, from, to, verb, n, last, inner) {
  depth = 0; word = ""; from = 0; to = 0; verb = ""; last = ""; inner = 0
  sql = sql " ;"
  for (i = 1; i <= length(sql); i++) {
    c = substr(sql, i, 1)
    if (c ~ /[a-z_0-9$.:"]/) { word = word c; continue }
    if (depth == 0 && word != "") {
      if (verb == "" && word ~ /^(select|insert|update|delete|create|set)$/) {
        verb = word
        if (verb == "select") from = i
      } else if (word == "returning") {
        from = i; to = 0; verb = "returning"
      } else if (verb == "select" && to == 0 && word ~ /^(from|where|union|order|limit|group|for)$/) {
        to = i - length(word)
      }
      last = word
    }
    word = ""
    if (c == "(") {
      if (depth++ == 0 && verb == "" && last !~ /^(as|materialized)$/ && !inner && sql ~ /^ *(with|\()/)
        inner = substr(sql, i + 1) ~ /^ *select / ? i : 0
    } else if (c == ")") {
      if (--depth == 0) last = c
    }
  }
  if (verb == "" && inner) return find_columns(substr(sql, inner + 1, closing(sql, inner) - inner - 1), list)
  if (from == 0) return 0
  if (to == 0) to = length(sql) - 1
  return split_list(substr(sql, from, to - from), list)
}

# The place of the bracket that closes the one at `at`.
function closing(sql, at,   depth, i, c) {
  depth = 0
  for (i = at; i <= length(sql); i++) {
    c = substr(sql, i, 1)
    if (c == "(") depth++
    if (c == ")" && --depth == 0) return i
  }
  return length(sql)
}

function split_list(text, list,   i, c, depth, n, item) {
  sub(/^ *distinct /, "", text)
  n = 0; depth = 0; item = ""
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    if (c == "(" || c == "[") depth++
    if (c == ")" || c == "]") depth--
    if (c == "," && depth == 0) { list[++n] = item; item = ""; continue }
    item = item c
  }
  list[++n] = item
  return n
}

# How a column of a list is called; empty if it has no name.
function name_of(item) {
  gsub(/^ +| +$/, "", item)
  gsub(/"/, "", item)
  if (item ~ / as [a-z_][a-z_0-9]*$/) { sub(/.* as /, "", item); return item }
  if (item ~ /^([a-z_][a-z_0-9]*\.)?[a-z_][a-z_0-9]*$/ && item !~ /^(null|true|false)$/) { sub(/.*\./, "", item); return item }
  return ""
}

# The names as "a, b, c"; "?" and the reason if one is missing; empty if there are no columns.
function names_of(sql,   list, n, i, name, names, used) {
  split("", list); split("", used)
  n = find_columns(without_literals(sql), list)
  names = ""
  for (i = 1; i <= n; i++) {
    name = name_of(list[i])
    if (name == "") return "? column " i " has no name: give it one with `as`"
    if (name in used) return "? two columns are called " name
    used[name] = 1
    names = names (i > 1 ? ", " : "") name
  }
  return names
}

function write_columns(query, names,   list, n, i) {
  n = split(names, list, ", ")
  printf "namespace %s_columns {\ninline constexpr std::size_t ", query
  for (i = 1; i <= n; i++) printf "%s = %d%s", list[i], i - 1, i < n ? ", " : ";\n"
  printf "inline constexpr std::string_view all = \"%s\";  // queries that are read alike compare this\n}\n", names
}

# Names for a query, or a comment that says why there are none. Two dialects that both have names must agree.
function describe(query,   lite, server) {
  lite = names_of(text[query, "sqlite"])
  server = names_of(text[query, "postgres"])
  if (lite == "" && server == "") return
  if (lite ~ /^\?/ || server ~ /^\?/) {
    print "// Without names for the columns" (lite ~ /^\?/ ? "; sqlite: " substr(lite, 3) : "") \
      (server ~ /^\?/ ? "; postgres: " substr(server, 3) : "")
    return
  }
  if (lite != server && lite != "" && server != "") {
    printf "query %s.%s: its columns differ between the dialects and have to agree:\n  sqlite:   %s\n  postgres: %s\n", \
      capability, query, lite, server > "/dev/stderr"
    failed = 1
    return
  }
  if (lite == "") lite = server
  write_columns(query, lite)
  described[++described_count] = "    std::pair<query, std::string_view>{" query ", " query "_columns::all},"
}

END {
  print "// Generated from .sql files; do not edit."
  print "#pragma once"
  print "#include <array>\n#include <cstddef>\n#include <string_view>\n#include <utility>\n"
  print "#include \"settle/database.hpp\"\n"
  print "namespace settle::queries::" capability " {\n"
  for (i = 1; i <= count; i++) {
    n = order[i]
    printf "inline constexpr query %s{\"%s.%s\", R\"sql(%s)sql\", R\"sql(%s)sql\"};\n", \
      n, capability, n, text[n, "sqlite"], text[n, "postgres"]
    describe(n)
  }
  print "\n// For the test that asks the databases whether the columns are called so."
  printf "inline constexpr std::array<std::pair<query, std::string_view>, %d> described_columns{\n", described_count
  for (i = 1; i <= described_count; i++) print described[i]
  print "};"
  print "\n}  // namespace settle::queries::" capability
  exit failed
}
