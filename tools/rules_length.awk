# Lengths of files and functions. The first file is the ratchet: `<file> <lines>` and `<file>:<function> <lines>`
# allow what is already there; what became shorter has to be entered with its new number.
#
# A function is a `{` at namespace or class level whose text so far holds a parameter list and is neither a class
# nor an initialiser. Its length runs from the first line of its head to its closing brace.
BEGIN { file_max = 600; function_max = 70 }

# The line without comments and literals. Keeps the state of /* */ and of raw strings.
function code_of(line,   out, c, rest) {
  out = ""
  while (line != "") {
    if (in_raw != "") {
      if (!(c = index(line, in_raw))) return out
      line = substr(line, c + length(in_raw)); in_raw = ""; continue
    }
    if (in_comment) {
      if (!(c = index(line, "*/"))) return out
      line = substr(line, c + 2); in_comment = 0; continue
    }
    if (substr(line, 1, 2) == "//") return out
    if (substr(line, 1, 2) == "/*") { in_comment = 1; line = substr(line, 3); continue }
    if (match(line, /^R"[^( ]*\(/)) {
      in_raw = ")" substr(line, 3, RLENGTH - 3) "\""; line = substr(line, RLENGTH + 1); out = out "\"\""; continue
    }
    if (match(line, /^"([^"\\]|\\.)*"/)) { out = out "\"\""; line = substr(line, RLENGTH + 1); continue }
    if (match(line, /^[0-9]'[0-9]/)) { out = out substr(line, 1, 1); line = substr(line, 3); continue }
    if (match(line, /^'([^'\\]|\\[^']+|\\')'/)) { out = out "0"; line = substr(line, RLENGTH + 1); continue }
    out = out substr(line, 1, 1); line = substr(line, 2)
  }
  return out
}

# The name before the first parenthesis of a head; for GoogleTest's macros also what is inside.
function name_of(head,   name) {
  if (match(head, /TEST(_F|_P)?\([^)]*\)/)) {
    name = substr(head, RSTART, RLENGTH); gsub(/.*\(|\)| /, "", name); sub(/,/, ".", name); return name
  }
  name = head
  sub(/\(.*/, "", name); sub(/ +$/, "", name); sub(/.*[ *&]/, "", name)
  return name
}

function kind_of(head) {
  if (head ~ /(^|[ ;}])namespace([ ]|$)/ || head ~ /extern ""/) return "scope"
  if (head ~ /(^|[ >])(class|struct|union|enum)[ ]/ && head !~ /\) *(const|noexcept|override|final|[ ])*$/) return "scope"
  if (head ~ /=[^()]*$/ && head !~ /operator *[=!<>]/) return "other"  # an initialiser
  if (head ~ /\(/ && head !~ /^[^()]*= *\[/) return "function"
  return "other"
}

function judge(what, where, length_now, max, noun) {
  if (what in ratchet) {
    used[what] = 1
    if (length_now > ratchet[what]) complain(where, what " has grown from " ratchet[what] " to " length_now " lines; " max " is the limit")
    else if (length_now <= max) complain(where, what " is within the limit now: take it out of the ratchet")
    else if (length_now < ratchet[what]) complain(where, what " has shrunk from " ratchet[what] " to " length_now " lines: enter that in the ratchet")
  } else if (length_now > max) complain(where, noun " " what " has " length_now " lines; " max " is the limit")
}
function complain(where, why) { printf "%s: %s\n", where, why; broken = 1 }

function begin_file() {
  depth = 0; head = ""; head_line = 0; in_comment = 0; in_raw = ""; inside = 0
}
function end_file() { if (file != "") judge(file, file ":1", lines, file_max, "the file") }

FILENAME == ARGV[1] { if (NF >= 2 && $1 !~ /^#/) ratchet[$1] = $2; next }
FNR == 1 { end_file(); file = FILENAME; begin_file() }
{
  lines = FNR
  if (in_raw == "" && !in_comment && /^[ \t]*#/) next
  text = code_of($0)
  while (match(text, /[{};]/)) {
    mark = substr(text, RSTART, 1)
    piece = substr(text, 1, RSTART - 1); text = substr(text, RSTART + 1)
    if (inside) {  # in a function only the braces matter
      if (mark == "{") depth++
      else if (mark == "}" && --depth == inside - 1) {
        if (name != "") judge(file ":" name, file ":" start, FNR - start + 1, function_max, "the function")
        inside = 0
      }
      head = ""; head_line = 0
      continue
    }
    if (piece ~ /[^ \t]/ && !head_line) head_line = FNR
    head = head " " piece
    if (mark == "{") {
      kind = kind_of(head)
      depth++
      if (kind == "function") { inside = depth; start = head_line ? head_line : FNR; name = name_of(head) }
      else if (kind == "other") { inside = depth; start = FNR; name = "" }
      head = ""; head_line = 0
    } else if (mark == "}") { depth--; head = ""; head_line = 0 }
    else { head = ""; head_line = 0 }
  }
  if (!inside && text ~ /[^ \t]/) {
    if (text ~ /^ *(public|private|protected): *$/) next
    if (!head_line) head_line = FNR
    head = head " " text
  }
}
END {
  end_file()
  for (what in ratchet) if (!(what in used)) complain("tools/rules_ratchet.txt", what " is not there any more: take it out")
  exit broken
}
