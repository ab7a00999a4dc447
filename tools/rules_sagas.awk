# What GCC 12 compiles wrongly in statements with co_await, and no static_assert can see:
#
#   if (co_await f())          in a body without variables the condition is lost: write if (const auto x = co_await f())
#   co_await f(make({.n = 1})) a braced temporary is destroyed twice: give it a name first
#   co_await f([n] { … })      so is a lambda that captures by value: capture a reference, or give it a name
#
# It reads statements, not C++: a statement ends at ; or where a block begins or ends. It can be run alone:
#   awk -f tools/rules_sagas.awk FILE...
function complain(line, why) {
  printf "%s:%d: %s\n", FILENAME, line, why
  broken = 1
}

# The line without comments and without what stands in its literals.
function stripped(line,   out, at, c, quote) {
  out = ""
  for (at = 1; at <= length(line); at++) {
    c = substr(line, at, 1)
    if (in_comment) {
      if (substr(line, at, 2) == "*/") { in_comment = 0; at++ }
    } else if (quote != "") {
      if (c == "\\") at++
      else if (c == quote) { quote = ""; out = out c }
    } else if (substr(line, at, 2) == "//") {
      break
    } else if (substr(line, at, 2) == "/*") {
      in_comment = 1; at++
    } else if (c == "\"" || (c == "'" && out !~ /[0-9a-fA-F]$/)) {
      quote = c; out = out c
    } else {
      out = out c
    }
  }
  return out
}

function begin_statement() { text = ""; brace_line = 0; braces = 0 }

# Whether the brace that follows `before` begins a block, not a value.
function begins_block(before) {
  sub(/[ \t]+$/, "", before)
  if (before == "" || before ~ /(\)|\])$/) return 1
  if (before ~ /(^|[^A-Za-z_0-9])(else|do|try|const|noexcept|override|final|mutable)$/) return 1
  return before ~ /^[ \t]*(template *<.*> *)?(namespace|struct|class|enum|union|extern|inline namespace)([^A-Za-z_0-9]|$)/ ||
         before ~ /\) *(const)? *(noexcept)? *->[^=]*$/
}

# What stands in the parentheses of an if, switch or while.
function condition_of(statement,   at, depth, c) {
  if (!match(statement, /^[ \t]*(else )?[ \t]*(if|switch|while)( constexpr)? *\(/)) return ""
  statement = substr(statement, RLENGTH + 1)
  depth = 1
  for (at = 1; at <= length(statement) && depth > 0; at++) {
    c = substr(statement, at, 1)
    if (c == "(") depth++
    if (c == ")") depth--
  }
  return substr(statement, 1, at - 2)
}

function judge() {
  if (text !~ /(^|[^A-Za-z_0-9])co_await([^A-Za-z_0-9]|$)/) return
  if (brace_line)
    complain(brace_line, "a braced temporary in a statement with co_await: give it a name first")
  if (text ~ /[(,=] *\[[^\]&]*[A-Za-z_=][^\]]*\] *([({m]|$)/ && text !~ /[(,=] *\[this\]/)
    complain(FNR, "a lambda that captures by value in a statement with co_await: give it a name first")
  if (condition_of(text) ~ /co_await/ &&
      condition_of(text) !~ /^ *(const )?[A-Za-z_][A-Za-z_0-9:<>, ]*[ &*]+[a-z_0-9]+ *= *co_await/)
    complain(FNR, "co_await in a condition: write if (const auto x = co_await ...)")
}

FNR == 1 { begin_statement(); in_comment = 0 }
/^[ \t]*#/ { next }
{
  line = stripped($0)
  for (i = 1; i <= length(line); i++) {
    c = substr(line, i, 1)
    if (c == "{" && braces == 0 && begins_block(text)) { judge(); begin_statement(); continue }
    if (c == "{") { if (!brace_line) brace_line = FNR; braces++ }
    if (c == "}" && braces > 0) braces--
    else if (c == "}") { judge(); begin_statement(); continue }
    if (c == ";" && braces == 0) { judge(); begin_statement(); continue }
    text = text c
  }
  text = text " "
}
END { exit broken }
