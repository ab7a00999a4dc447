# Whether the map of the code has every room. The first file is the map; -v rooms lists the folders that are
# there and -v pages the pages below docs/design, both separated by spaces.
#
# A row of its list "Rooms" names one or more rooms in its first cell. A room below src/ or drivers/ is a capability
# and needs a link to its page in its row; src/base and src/compose are none.

function complain(line, what) { printf "%s:%d: %s\n", FILENAME, line, what; broken = 1 }
function is_capability(room) { return room ~ /^(src|drivers)\// && room != "src/base" && room != "src/compose" }

# Notes every page of docs/design that the line links to; how many those are.
function links(text,   found, page) {
  while (match(text, /\]\(design\/[^)#]*/)) {
    page = substr(text, RSTART + 9, RLENGTH - 9)
    text = substr(text, RSTART + RLENGTH)
    if (page in is_page) found++
    else complain(FNR, "there is no page docs/design/" page)
    linked[page] = 1
  }
  return found + 0
}

BEGIN {
  n = split(rooms, all, " ")
  for (i = 1; i <= n; i++) is_room[all[i]] = 1
  m = split(pages, paths, " ")
  for (i = 1; i <= m; i++) is_page[paths[i]] = 1
}

/^## / { inside = $0 == "## Rooms" }
{ pages_here = links($0) }
inside && /^\| *`/ {
  split($0, cell, "|")
  names = cell[2]
  while (match(names, /`[^`]*`/)) {
    room = substr(names, RSTART + 1, RLENGTH - 2)
    names = substr(names, RSTART + RLENGTH)
    if (room in listed) complain(FNR, room " is listed twice")
    listed[room] = 1
    if (room ~ /^(src|drivers)\// && !(room in is_room)) complain(FNR, "there is no room " room " any more")
    if (is_capability(room) && pages_here == 0) complain(FNR, room " is a capability: link its page below docs/design")
  }
}

END {
  for (i = 1; i <= n; i++)
    if (!(all[i] in listed)) complain(1, all[i] " is not in the list of rooms")
  for (i = 1; i <= m; i++)
    if (!(paths[i] in linked)) complain(1, "nothing links to docs/design/" paths[i])
  exit broken
}
