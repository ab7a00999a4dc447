# Compares docs/behaviours.md (the first file) with the comments above the tests (all others).
#
# A row of the page is `| <id> | <sentence> | <tests on SQLite> | <tests on PostgreSQL> |`; `<id> (part)` where
# only a part works. Tests are named `suite.name` in backquotes. A test says what it proves in the comment above
# it: `Proves O3 (many instances), O4: …`. A test of Node is named as its file and its sentence:
# test("one key, always") in user_action.test.mjs is `user_action.one_key_always`.
function complain(where, why) { printf "%s: %s\n", where, why; broken = 1 }

# The ids of the list that follows "Proves".
function note_proofs(text, test, where,   id) {
  while (match(text, /Proves [A-Z][0-9]+/)) {
    text = substr(text, RSTART + 7)
    while (match(text, /^[A-Z][0-9]+/)) {
      id = substr(text, 1, RLENGTH)
      text = substr(text, RLENGTH + 1)
      if (text !~ /^'/) { proves[test, id] = 1; proven[id] = where }  # "G5's foundation" is not G5
      sub(/^ \([^)]*\)/, "", text)
      if (!sub(/^, /, "", text)) break
    }
  }
}

FNR == 1 { page = NR == 1; comment = "" }
page && /^\| [A-Z][0-9]+( \(part\))? \|/ {
  count = split($0, cell, "|")
  id = cell[2]; gsub(/ |\(part\)/, "", id)
  if (id in listed) complain(FILENAME ":" FNR, id " is listed twice")
  if (count != 6) complain(FILENAME ":" FNR, "not the four columns: id, behaviour, SQLite, PostgreSQL")
  listed[id] = FILENAME ":" FNR
  named = 0
  rest = cell[4] cell[5]
  while (match(rest, /`[a-z0-9_]+\.[a-z0-9_]+`/)) {
    want[++wants] = substr(rest, RSTART + 1, RLENGTH - 2); want_id[wants] = id; want_at[wants] = FILENAME ":" FNR
    rest = substr(rest, RSTART + RLENGTH)
    named++
  }
  if (!named) complain(FILENAME ":" FNR, id " is listed without a test")
  next
}
page { next }

/^ *\/\// { line = $0; sub(/^ *\/\/ */, "", line); comment = comment " " line; next }
/^(TYPED_)?TEST(_F|_P)?\(/ {
  test = $0
  if (test !~ /\)/) { getline more; sub(/^ +/, " ", more); test = test more }
  sub(/^[A-Z_]+\(/, "", test); sub(/\).*/, "", test); gsub(/ /, "", test); sub(/,/, ".", test)
  exists[test] = 1
  note_proofs(comment, test, FILENAME ":" FNR)
}
/^test\("/ {
  test = tolower($0)
  sub(/^test\("/, "", test); sub(/".*/, "", test); gsub(/[^a-z0-9]+/, "_", test)
  suite = FILENAME; sub(/.*\//, "", suite); sub(/\..*/, "", suite)
  exists[suite "." test] = 1
  note_proofs(comment, suite "." test, FILENAME ":" FNR)
}
{ comment = "" }

END {
  if (list) {
    for (pair in proves) { split(pair, part, SUBSEP); print part[2], part[1] }
    exit
  }
  for (i = 1; i <= wants; i++) {
    if (!(want[i] in exists)) complain(want_at[i], "there is no test " want[i])
    else if (!((want[i], want_id[i]) in proves))
      complain(want_at[i], "the test " want[i] " does not say that it proves " want_id[i])
  }
  for (id in proven) if (!(id in listed)) complain(proven[id], "proves " id ", which docs/behaviours.md does not list")
  if (!wants) complain("docs/behaviours.md", "names no test; a check of nothing must not pass")
  exit broken
}
