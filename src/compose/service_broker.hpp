// A broker as people name it: the file of an embedded one, or the URL of a server, amqp://…, amqps://…,
// kafka://… or kafkas://…. The one place that chooses the driver; programs ask here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "settle/broker.hpp"
#include "settle/database.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "settle/kafka.hpp"  // for the defaults; the drivers themselves may be missing
#include "settle/rabbitmq.hpp"
#include "settle/sqlite.hpp"
#include "sql/migrations.hpp"

namespace settle::compose {

// What holds for every server, whichever it is.
struct server_options {
  duration connect_timeout = std::chrono::seconds(5);
  std::string prefix = {};  // of the name of everything that is made there
  std::string ca_file = {};
  std::string certificate_file = {};
  std::string key_file = {};
};

struct broker_options {
  environment env = {};
  duration busy_timeout = sqlite::broker_options{}.busy_timeout;
  int partitions = sqlite::broker_options{}.partitions;
  duration lease_ttl = sqlite::broker_options{}.lease_ttl;
  duration keep = sqlite::broker_options{}.keep;
  std::int64_t bytes_max = sqlite::broker_options{}.bytes_max;
  server_options server = {};
  // Of these, what stands above is taken from there: for a Kafka the partitions as well.
  rabbitmq::options rabbitmq = {};
  kafka::options kafka = {};
};

// Whether it is a server; otherwise it is a file.
bool is_broker_server(std::string_view url);

// Throws invalid_argument, without quoting the text, if it names no broker that this build knows: there may
// be a password in it.
void check_broker(const std::string& url);

// Why this build has no driver for it, and what to do about it; empty: it has one.
std::string missing_broker_driver(std::string_view url);

// The same without passwords, for people to read; a file as it is.
std::string broker_without_secrets(const std::string& url);

// Creates a file and its tables if they are not there. Of a server nothing is asked before it is needed.
std::unique_ptr<broker> open_broker(const std::string& url, const broker_options& with = {});

// A file as a database, for those who look into it.
std::unique_ptr<database> open_broker_file(const std::string& path, const broker_options& with = {});

// Whether an open database is a broker's file.
bool is_broker_file(database& db);

// A broker that is looked into, without publishing to it or reading from it.
class broker_view {
 public:
  virtual ~broker_view() = default;
  virtual broker_inspection& inspection() = 0;
  virtual const environment& env() const = 0;
  // Why it takes no messages, or not of every topic, and what to do about it; empty: it does. Throws if it
  // does not answer.
  virtual std::string trouble() = 0;
};
std::unique_ptr<broker_view> look_into_broker(const std::string& url, const broker_options& with = {});
std::unique_ptr<broker_view> look_into_broker(std::unique_ptr<database> file);

// What the tables of a file are made by.
std::span<const sql::migration> broker_migrations();

}  // namespace settle::compose
