#include "postgres/pooler.hpp"

#include "postgres/decode.hpp"
#include "postgres/exchange.hpp"
#include "postgres/session.hpp"

namespace settle::inline v0::postgres {

bool behind_pooler(const std::string& conninfo, const options& opts) {
  const auto to = read_conninfo(conninfo);
  const limit within{steady::now() + opts.connect_timeout, {}};
  poller wait;
  const auto conn = connect(to, within, wait, opts.env);
  pipeline ask(conn.get(), wait);
  ask.run("select pg_backend_pid()", {});
  check_statements(round_trip(conn.get(), ask, within), ask, to.name);
  return read_result(ask.steps().back().answer.get())[0][0].integer() != PQbackendPID(conn.get());
}

}  // namespace settle::inline v0::postgres
