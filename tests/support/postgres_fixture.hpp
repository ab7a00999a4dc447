// The private servers of tools/servers, and of PostgreSQL an empty database on it for each test.
#pragma once

#include <string>
#include <utility>

namespace settle::test {

// Connection strings from the environment, or else from `tools/servers env`; empty if there is no such
// server.
std::string postgres_conninfo();
std::string pgbouncer_conninfo();

// Why tests on PostgreSQL cannot run here; empty if they can. Throws if CI=true, where they have to.
std::string postgres_missing();
std::string pgbouncer_missing();

// The same for Redis, as a redis:// URL.
std::string redis_url();
std::string redis_missing();

// A conninfo with something added; later words win over earlier ones.
inline std::string with(const std::string& conninfo, const std::string& more) {
  return conninfo + " " + more;
}

// The value of a word in a conninfo.
std::string word_of(const std::string& conninfo, const std::string& keyword);

// One statement outside of any transaction. Returns the first cell as text.
std::string run_sql(const std::string& conninfo, const std::string& sql);

// A database of its own, dropped at the end together with whoever is still connected.
class scratch_database {
 public:
  explicit scratch_database(const std::string& server = postgres_conninfo());
  ~scratch_database();
  scratch_database(const scratch_database&) = delete;
  scratch_database& operator=(const scratch_database&) = delete;

  const std::string& name() const { return name_; }
  std::string conninfo() const { return with(server_, "dbname=" + name_); }
  std::string run(const std::string& sql) const { return run_sql(conninfo(), sql); }

  // As if nothing had ever been published or consumed here. Much faster than to migrate anew.
  void forget_events() const;

 private:
  std::string server_;
  std::string name_;
};

// A server for one test alone, which may stop, restart, kill or configure it. A hot standby on demand.
class private_server {
 public:
  // RabbitMQ with settings: "-rabbit consumer_timeout 2000".
  explicit private_server(const std::string& which = "postgres", std::string rabbitmq = {});
  ~private_server();
  private_server(const private_server&) = delete;
  private_server& operator=(const private_server&) = delete;

  std::string conninfo() const;
  std::string standby_conninfo() const;
  std::string redis_url() const;
  std::string rabbitmq_url(int node = 0) const;  // 1 to 3: of the cluster
  std::string kafka_url() const;
  std::string kafka_cluster_url() const;
  // A command of tools/servers on this set: "restart postgres", "crash postgres", "up standby".
  void command(const std::string& words) const;
  // From its next start on.
  void set_rabbitmq(std::string settings) { rabbitmq_ = std::move(settings); }

 private:
  std::string variable(const std::string& name) const;
  std::string folder_;
  std::string rabbitmq_;
};

}  // namespace settle::test
