# Compares docs/reference/logs.md (the first file) with the log lines that the product writes (all others): their
# names, levels and fields.
#
# A row of the page is "| `name` | level, level | when | `field`, `field` |". A line is a call `log->write(` or
# `log.write(`. Names that reach their call through a variable stand in the code as `{log_level::info, "name"`, or
# begin with table_relay_; of those the fields are not compared. Where one call has two names, levels are not.
#
# -v list=1 prints the rows as the code has them, without the column `when`.
function complain(where, why) { printf "%s: %s\n", where, why; broken = 1 }

# Adds a word to a list, once: ", a, b" becomes ", a, b, c".
function add(list, word) { return index(list ", ", ", " word ", ") ? list : list ", " word }

function note(name, level, fields, where,   rest) {
  if (!(name in written)) written[name] = where
  while (match(level, /log_level::[a-z]+/)) {
    levels[name] = add(levels[name], substr(level, RSTART + 11, RLENGTH - 11))
    level = substr(level, RSTART + RLENGTH)
  }
  if (fields == "") return
  rest = fields
  while (match(rest, /\{"[a-z_]+",/)) {
    has[name, substr(rest, RSTART + 2, RLENGTH - 4)] = 1
    all_fields[name] = add(all_fields[name], substr(rest, RSTART + 2, RLENGTH - 4))
    rest = substr(rest, RSTART + RLENGTH)
  }
}

# The text of one call, up to its semicolon.
function take_call(text, where,   head, fields, at, rest, name) {
  at = index(text, "{{")
  head = at ? substr(text, 1, at - 1) : text
  fields = at ? substr(text, at) : ""
  rest = head
  if (gsub(/"[a-z_]+"/, "&", rest) > 1) gsub(/log_level::/, "", head)  # which is which is not told
  while (match(rest, /"[a-z_]+"/)) {
    name = substr(rest, RSTART + 1, RLENGTH - 2)
    rest = substr(rest, RSTART + RLENGTH)  # before note(), which matches too
    note(name, head, fields, where)
  }
}

FNR == 1 { page = NR == 1; in_call = 0; product = FILENAME ~ /^(src|drivers|daemon|cli)\// && FILENAME !~ /_test\.cpp$/ }
page && /^\| `[a-z_]+` \|/ {
  split($0, cell, "|")
  name = cell[2]; gsub(/[ `]/, "", name)
  if (name in listed) complain(FILENAME ":" FNR, name " is listed twice")
  listed[name] = FILENAME ":" FNR
  page_levels[name] = cell[3]; page_fields[name] = cell[5]
  next
}
page || !product { next }
{
  line = $0
  sub(/^ *\/\/.*/, "", line)
  if (!in_call && match(line, /log(\(\)|\))?(->|\.)write\(/)) {
    in_call = 1; call = substr(line, RSTART + RLENGTH); at = FILENAME ":" FNR
  } else if (in_call) call = call line
  if (in_call && line ~ /;$/) { take_call(call, at); in_call = 0 }
  else if (!in_call && match(line, /\{log_level::[a-z]+, "[a-z_]+"/)) {
    text = substr(line, RSTART, RLENGTH); name = text
    sub(/^[^"]*"/, "", name); sub(/"$/, "", name)
    note(name, text, "", FILENAME ":" FNR)
  } else if (!in_call && match(line, /"table_relay_[a-z_]+"/))
    note(substr(line, RSTART + 1, RLENGTH - 2), "", "", FILENAME ":" FNR)
}

END {
  for (name in written) {
    if (list) {
      fields = substr(all_fields[name], 3); gsub(/[a-z_]+/, "`&`", fields)
      printf "| `%s` | %s | | %s |\n", name, substr(levels[name], 3), fields
      continue
    }
    if (!(name in listed)) { complain(written[name], name " is not in docs/reference/logs.md"); continue }
    count = split(levels[name], each, ", ")
    for (i = 2; i <= count; i++)
      if (page_levels[name] !~ "(^| |,)" each[i] "( |,|$)") complain(listed[name], name " is also written as " each[i])
    count = split(all_fields[name], each, ", ")
    for (i = 2; i <= count; i++)
      if (!index(page_fields[name], "`" each[i] "`")) complain(listed[name], name " has the field " each[i])
    rest = page_fields[name]
    while (all_fields[name] != "" && match(rest, /`[a-z_]+`/)) {
      field = substr(rest, RSTART + 1, RLENGTH - 2)
      if (!((name, field) in has)) complain(listed[name], name " has no field " field)
      rest = substr(rest, RSTART + RLENGTH)
    }
  }
  if (list) exit
  for (name in listed) if (!(name in written)) complain(listed[name], "nothing writes " name)
  if (!length(written)) complain("docs/reference/logs.md", "no log line was found; a check of nothing must not pass")
  exit broken
}
