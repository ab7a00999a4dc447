#include "postgres/pooler.hpp"

#include "postgres/decode.hpp"
#include "postgres/exchange.hpp"
#include "postgres/session.hpp"

namespace settle::inline v0::postgres {

namespace {

// One connection that asks who answers it.
class guest {
 public:
  guest(const settings& to, const limit& within, const environment& env)
      : name_(to.name), within_(within), conn_(connect(to, within, wait_, env)) {}

  std::int64_t served_by() {
    pipeline ask(conn_.get(), wait_);
    ask.run("select pg_backend_pid()", {});
    check_statements(round_trip(conn_.get(), ask, within_), ask, name_);
    return read_result(ask.steps().back().answer.get())[0][0].integer();
  }
  bool is_served_by_greeter() { return served_by() == PQbackendPID(conn_.get()); }

 private:
  const std::string& name_;
  const limit& within_;
  poller wait_;
  handle conn_;
};

}  // namespace

bool behind_pooler(const std::string& conninfo, const options& opts) {
  const auto to = read_conninfo(conninfo);
  const limit within{steady::now() + opts.connect_timeout, {}};
  return !guest(to, within, opts.env).is_served_by_greeter();
}

bool sessions_are_shared(const std::string& conninfo, const options& opts) {
  const auto to = read_conninfo(conninfo);
  const limit within{steady::now() + opts.connect_timeout, {}};
  guest first(to, within, opts.env);
  if (first.is_served_by_greeter()) return false;
  // A pooler gives the next transaction the session that was used last, or the one that was used the longest
  // ago: either shows, in what the second one is given or in what the first one is given now.
  const auto session = first.served_by();
  if (first.served_by() != session) return true;
  guest second(to, within, opts.env);
  return second.served_by() == session || second.served_by() == session || first.served_by() != session;
}

}  // namespace settle::inline v0::postgres
