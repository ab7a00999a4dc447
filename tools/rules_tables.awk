# Who may touch which table: compares docs/design/tables.md (the first file) with the statements of the product (all
# others): .sql files, migrations among them, and texts in programs.
#
# A row of the page is "| `table` | `owner`, `writer` | `reader` |". A table is named in a statement as settle.name
# (PostgreSQL), settle_name or broker_name (SQLite). Of a literal only its beginning counts, because that is how
# sequences are named ('settle.outbox_seq'); texts for people stay out.
function complain(where, why) { printf "%s: %s\n", where, why; broken = 1 }

# The room of a file, as the page calls it.
function room_of(path,   part) {
  split(path, part, "/")
  if (part[1] == "src") return part[2]
  if (part[1] == "drivers") return "drivers/" part[2]
  return part[1]
}

# Whether `word` is among the quoted words of a cell.
function is_in(cell, word) { return index(cell, "`" word "`") > 0 }

# The statement's line with the insides of its literals taken out, but for a name at the beginning of one.
function without_texts(line,   made, at, inside) {
  made = ""
  while ((at = index(line, "'")) > 0) {
    made = made substr(line, 1, at)
    line = substr(line, at + 1)
    at = index(line, "'")
    inside = at > 0 ? substr(line, 1, at - 1) : line
    made = made (inside ~ /^(settle[._]|broker_)[a-z_0-9]*[a-z0-9]$/ ? inside : "") "'"
    line = at > 0 ? substr(line, at + 1) : ""
  }
  return made line
}

function judge(name, writes, where, room) {
  if (!(name in owner)) {
    complain(where, name " is not in " page)
    return
  }
  used[name] = 1
  if (is_in(owner[name], room)) return
  if (writes) {
    complain(where, room " may not write " name ": it belongs to " owner[name])
    return
  }
  if (is_in(reader[name], room)) return
  if ((room == "inspect" || room == "doctor") && name !~ /^broker_/) return
  complain(where, room " may not read " name ": it belongs to " owner[name])
}

# Names of tables in a line, and what is done with each. `before` is what stood at the end of the line above.
function take_line(line, where, room,   rest, at, name, after, lead, writes, found, pattern) {
  rest = line
  lead = before
  pattern = room_is_sqlite ? "(settle_|broker_)[a-z_0-9]+" : "settle\\.[a-z_0-9]+"
  if (is_program) pattern = "(settle[._]|broker_)[a-z_0-9]+"
  while (match(rest, pattern)) {
    name = substr(rest, RSTART, RLENGTH)
    lead = lead " " substr(rest, 1, RSTART - 1)
    after = substr(rest, RSTART + RLENGTH, 1)
    rest = substr(rest, RSTART + RLENGTH)
    found = lead !~ /[a-z_0-9.]$/  # else it is the end of another word
    sub(/[ \t]+$/, "", lead)
    if (name ~ /^broker_/ || is_program) found = lead ~ /(^|[ \t("])(from|join|into|update|table|exists)$/ || lead ~ /'$/
    writes = lead ~ /(insert into|delete from|nextval\('|setval\(')$/ || (lead ~ /(^|[ \t(])update$/ && lead !~ /for( no key)? update$/)
    lead = lead " " name
    if (!found || after == ".") continue
    if (after == "(" && name ~ /^settle_/) continue  # a function that the driver gives to SQLite
    sub(/^settle[._]/, "", name)
    if (after == "(") name = name "()"
    judge(name, writes, where, room)
  }
  before = lead " " rest
  sub(/.*;/, "", before)
  before = substr(before, length(before) > 60 ? length(before) - 60 : 1)
}

# What migrations make has to have its row; its leaves, outbox_0 to outbox_7, belong to their table.
function take_migration(line,   name) {
  if (line !~ /^[ \t]*create (unlogged |or replace )*(table|view|sequence) /) return
  sub(/^[ \t]*create (unlogged |or replace )*(table|view|sequence) (if not exists )?/, "", line)
  if (line !~ /^(settle[._]|broker_)[a-z_]*[a-z]/) return
  match(line, /^(settle[._]|broker_)[a-z_]*[a-z]/)
  name = substr(line, 1, RLENGTH)
  sub(/^settle[._]/, "", name)
  used[name] = 1
  if (!(name in owner)) complain(FILENAME ":" FNR, name " has no row in " page)
}

FNR == 1 {
  if (page == "") page = FILENAME
  room = room_of(FILENAME)
  is_program = FILENAME ~ /\.[ch]pp$/
  room_is_sqlite = FILENAME ~ /\/sqlite\//
  before = ""
}
FILENAME == page {
  if ($0 ~ /^\| `/) {
    split($0, cell, "|")
    gsub(/[ `]/, "", cell[2])
    if (cell[2] in owner) complain(page ":" FNR, cell[2] " stands here twice")
    owner[cell[2]] = cell[3]; reader[cell[2]] = cell[4]; row[cell[2]] = FNR
    gsub(/^ +| +$/, "", owner[cell[2]])
  }
  next
}
room == "migrations" { take_migration($0); next }
is_program && /^[ \t]*(\/\/|#)/ { next }
is_program { take_line($0, FILENAME ":" FNR, room); next }
/^[ \t]*--/ { next }
/^[ \t]*$/ { before = ""; next }
{
  if ($0 ~ /^[ \t]*(create|alter|drop) (unlogged )?(table|view|index|sequence|schema)/ && room != "sql")
    complain(FILENAME ":" FNR, "tables are made and changed by migrations only")
  take_line(without_texts($0), FILENAME ":" FNR, room)
}
END {
  for (name in owner)
    if (!(name in used) && name !~ /\(\)$/) complain(page ":" row[name], "there is no table " name " any more")
  exit broken
}
