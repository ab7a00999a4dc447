# Who may include whom. A file belongs to a zone by its path, an include to a zone by its text; `allowed` says
# which zones a zone may include beside itself and the standard library.
#
# Tests, and *_test.cpp beside the code, may include everything.

# The zone of a source file.
function zone_of(path,   part) {
  split(path, part, "/")
  if (path ~ /_test\.cpp$/ || part[1] == "tests" || part[1] == "bench") return "free"
  if (path ~ /^include\/settle\/adapter\//) return "adapter"
  if (part[1] == "include") return "public"
  if (part[1] == "src") return part[2]
  if (part[1] == "drivers") return "driver:" part[2]
  if (part[1] == "docs") return "demo"
  if (part[1] == "apps") return "apps"
  return part[1]
}

# The zone of an included file, from the text between the quotes or brackets.
function target_of(text, path,   part, name, folder) {
  if (text ~ /^<[a-z_]+>$/) return "std"
  if (text ~ /^<(sys|linux|arpa|net|netinet)\/|^<[a-z_0-9]+\.h>$/ && !(text in client)) return "system"
  if (text ~ /^</) {
    if (text in client) return "client:" client[text]
    name = substr(text, 2); split(name, part, "/")
    if (part[1] in client_folder) return "client:" client_folder[part[1]]
    if (text ~ /^<boost\/(asio|beast)/) return "library:net"
    sub(/[.>].*/, "", part[1])
    return "library:" part[1]
  }
  name = substr(text, 2, length(text) - 2)
  split(name, part, "/")
  if (name ~ /^settle\/adapter\//) return "adapter"
  if (part[1] == "settle") {
    sub(/\.hpp$/, "", part[2])
    return part[2] in driver ? "public:driver" : "public"
  }
  if (part[1] == "queries") {
    sub(/\.hpp$/, "", part[2])
    if (part[2] == "broker") return "queries:broker"
    if (part[2] ~ /^migrations_.*_broker$/) return "driver:sqlite"
    if (part[2] ~ /^migrations_/) return "sql"
    return part[2]
  }
  if (part[1] in driver) return "driver:" part[1]
  if (part[2] == "shared.hpp" && part[1] != zone_of(path)) return "shared"  # what a capability offers the others
  if (name !~ /\// || zone_of(path) == "apps") return zone_of(path)  # a neighbour, or a part of the same program
  return part[1]
}

function may(from, to) {
  if (from == "free" || from == to || to == "std") return 1
  if (from == "public") return 0
  # Programs ask compose for their stores, so that a build without a driver is one in which compose lacks it.
  # Built against the installed package, as users would: not even what drivers are made with.
  if (from == "apps") {
    if (text ~ /^"settle\/driver\//) return 0
    return to ~ /^public/ || to == "adapter" || to == "library:boost" || to == "system"
  }
  if (to == "public:driver") return from != "cli" && from != "daemon"
  if (to == "public") return 1
  if (from == "adapter") return to ~ /^library:/
  if (to == "library:gtest" || to == "library:gmock") return 0
  # The storm reads the daemon's file and opens what it names; programs of the documentation are users' programs.
  if (from == "demo" && FILENAME ~ /^demo\// && (to == "config" || to == "compose")) return 1
  if (from == "demo") return to == "adapter" || to ~ /^(library|client):/ || to == "system"
  # Ten seconds per source file: commands use cli/syntax.hpp.
  if (to == "library:CLI") return FILENAME ~ /^(cli\/(syntax|main|help|help_command|usage|serve)|daemon\/config\/command_line)\.cpp$/
  if (to == "library:net") return from == "http"  # costs half a minute per source file
  if (to == "system" || to ~ /^library:/) return 1
  if (to == "demo" || to == "tests" || to == "support") return 0
  if (to == "queries:broker") return from == "driver:sqlite"
  if (from == "cli" || from == "daemon") return to !~ /^(cli|daemon|driver:.*|client:.*)$/
  if (to ~ /^client:/) return from == "driver:" substr(to, 8)
  if (to == "adapter") return 0
  if (from == "base") return 0
  if (to == "base") return 1
  if (from == "sql" || from == "wire" || from == "broker" || from == "retry" || from == "http") return 0
  if (to == "retry") return from !~ /^driver:/
  if (to == "sql" || to == "wire" || to == "broker") return 1
  if (to == "shared") return from !~ /^driver:/
  if (from == "compose") return to != "cli" && to != "daemon" && to != "config"
  if (from == "config") return to == "compose"
  # What a replay is about is decided there; a saga's journal is read as its engine reads it.
  if (from == "inspect") return to == "dead_letter" || (to == "saga" && text ~ /saga\/journal\.hpp/)
  return 0  # a capability and a driver know none of the others
}

BEGIN {
  # Client libraries and the driver that alone may use each.
  client["<sqlite3.h>"] = "sqlite"; client["<libpq-fe.h>"] = "postgres"; client["<amqp.h>"] = "rabbitmq"
  client["<nats.h>"] = "nats"
  client_folder["hiredis"] = "redis"; client_folder["librdkafka"] = "kafka"; client_folder["rabbitmq-c"] = "rabbitmq"
  client_folder["nats"] = "nats"; client_folder["mongoc"] = "mongodb"; client_folder["bson"] = "mongodb"
  client_folder["postgresql"] = "postgres"
  split("sqlite postgres redis rabbitmq kafka nats mongodb dapr", names, " ")
  for (i in names) driver[names[i]] = 1
}

FNR == 1 { zone = zone_of(FILENAME) }
/^[ \t]*#[ \t]*include[ \t]/ {
  if (!match($0, /<[^>]*>|"[^"]*"/)) next
  text = substr($0, RSTART, RLENGTH)
  to = target_of(text, FILENAME)
  if (!may(zone, to)) {
    printf "%s:%d: %s may not include %s (%s)\n", FILENAME, FNR, zone, text, to
    broken = 1
  }
}
END { exit broken }
