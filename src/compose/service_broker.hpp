// The embedded broker of a data folder. The one place that chooses the driver; programs ask here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "settle/broker.hpp"
#include "settle/database.hpp"
#include "settle/driver/broker_inspection.hpp"
#include "settle/sqlite.hpp"
#include "sql/migrations.hpp"

namespace settle::compose {

struct broker_options {
  environment env = {};
  duration busy_timeout = sqlite::broker_options{}.busy_timeout;
  int partitions = sqlite::broker_options{}.partitions;
  duration lease_ttl = sqlite::broker_options{}.lease_ttl;
  duration keep = sqlite::broker_options{}.keep;
  std::int64_t bytes_max = sqlite::broker_options{}.bytes_max;
};

// Throws invalid_argument, without quoting the text, if it names no broker that this build knows: there may
// be a password in it.
void check_broker(const std::string& url);

// Creates the file and its tables if they are not there.
std::unique_ptr<broker> open_broker(const std::string& path, const broker_options& with = {});

// The same file as a database, for those who look into it.
std::unique_ptr<database> open_broker_file(const std::string& path, const broker_options& with = {});

// Whether an open database is a broker's file.
bool is_broker_file(database& db);

// A broker's file that is looked into, without being a broker in this process.
class broker_view {
 public:
  virtual ~broker_view() = default;
  virtual broker_inspection& inspection() = 0;
  virtual const environment& env() const = 0;
};
std::unique_ptr<broker_view> look_into_broker(std::unique_ptr<database> file);

// What its tables are made by.
std::span<const sql::migration> broker_migrations();

// Why it takes no messages, or not of every topic, and what to do about it; empty: there is room. `file` is
// what open_broker_file() gave.
std::string room_trouble(database& file, std::int64_t bytes_max);

}  // namespace settle::compose
