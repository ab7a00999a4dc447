// A PostgreSQL database: a pool of connections, and the wake-ups of those who wait for commits.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "postgres/hints.hpp"
#include "postgres/member_session.hpp"
#include "postgres/settings.hpp"
#include "settle/driver/database.hpp"
#include "settle/postgres.hpp"
#include "sql/pool.hpp"
#include "sql/presence.hpp"

namespace settle::inline v0::postgres {

class postgres_database final : public database, public sql::member_register {
 public:
  postgres_database(const std::string& conninfo, const options& opts);

  dialect speaks() const override { return dialect::postgres; }
  std::string name() const override { return to_.name; }
  std::unique_ptr<wakeup> watch() override;

  std::string_view mark() const override { return member_session::mark; }
  std::unique_ptr<sql::presence> show(const std::string& member) override { return members_.show(member); }
  std::vector<std::string> gone_of(std::span<const std::string> members) override {
    return members_.gone_of(members);
  }

 protected:
  std::unique_ptr<connection> acquire(const std::stop_token& cancel) override;
  void release(std::unique_ptr<connection> idle) noexcept override;

 private:
  settings to_;
  options options_;
  std::shared_ptr<wake_list> watchers_;
  hint_sender hints_;
  member_session members_;
  std::function<void()> committed_;
  sql::pool pool_;  // last, because its connections use all of the above
};

}  // namespace settle::inline v0::postgres
