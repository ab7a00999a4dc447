// Who acts in the simulated world. Each actor is a process of its own on the simulated machine; a step
// starts it if it is down, and does one bounded piece of work.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "settle/consume.hpp"
#include "settle/database.hpp"
#include "settle/driver/broker.hpp"
#include "settle/relay.hpp"
#include "simulation/sim_handlers.hpp"
#include "simulation/sim_vfs.hpp"

namespace settle::sim {

inline constexpr const char* orders_file = "orders.db";
inline constexpr const char* broker_file = "broker.db";
std::string file_of(const std::string& group);

// What the outside world remembers when everything else has crashed.
struct memory_of_customers {
  std::set<std::string> confirmed;  // commit() returned
  std::set<std::string> conflicts;  // repeated after an unknown outcome, and the key was taken
};

// What goes wrong outside the disk, in a hundred cases.
struct troubles {
  int handler_fails = 0;
  int publish_repeats = 0;      // the batch arrives twice
  int publish_answer_lost = 0;  // the batch arrives, the answer does not
};

struct surroundings {
  machine& computer;
  environment env;
  testing::seeded_random& choices;
  memory_of_customers& customers;
  troubles& now;
  moody_handlers& handlers;
  duration lease_ttl{};
  int checkpoint_pages = 1000;
  duration dedup_keep = std::chrono::hours(24);
  std::uint64_t consumer_batch_max = 8;

  bool in_a_hundred(int cases) const { return static_cast<int>(choices.below(100)) < cases; }
};

// What strikes in the middle of a step, and after how many points.
struct strike {
  int points = 0;
  bool power = false;
};

class actor {
 public:
  actor(surroundings& in, std::string name) : in_(in), name_(std::move(name)) {}
  virtual ~actor() = default;
  actor(const actor&) = delete;
  actor& operator=(const actor&) = delete;

  const std::string& name() const { return name_; }
  bool running() const { return process_ != nullptr; }

  // One piece of work; what came of it, in words. Never throws a settle::error.
  std::string step(const std::optional<strike>& during = std::nullopt);
  bool did_something() const { return did_something_; }  // in the last step; also if it failed

  void kill();  // SIGKILL, now
  void stop();  // an orderly end
  void bury();  // if it has died: forget its objects, whose handles are dead

 protected:
  virtual void open() = 0;
  virtual std::string work() = 0;
  virtual void leave() noexcept {}
  virtual void close() noexcept = 0;

  std::unique_ptr<database> open_database(const std::string& path) const;
  std::unique_ptr<broker> open_broker() const;
  const std::string& vfs() const { return process_->vfs(); }

  surroundings& in_;
  bool did_something_ = false;

 private:
  std::string name_;
  int starts_ = 0;
  bool opened_ = false;
  std::unique_ptr<process> process_;
};

// Places orders, each set in one transaction. A set whose outcome is unknown is repeated until its key
// answers.
class producer : public actor {
 public:
  enum class mode { place, roll_back, begin_slowly, finish };

  producer(surroundings& in, int number);
  mode next = mode::place;
  bool owes() const { return !trying_.empty(); }

 protected:
  struct order {
    std::string id, customer, payload;
  };

  void open() override;
  std::string work() override;
  void close() noexcept override;

  virtual std::string place();
  void choose_orders();
  void write(transaction& tx, const std::vector<order>& orders);
  std::string had_committed();

  std::vector<order> trying_;

 private:
  std::string roll_back();
  std::string begin_slowly();
  std::string confirm(owned_transaction& tx);

  int number_;
  int orders_ = 0;
  std::unique_ptr<database> db_;
  std::optional<owned_transaction> slow_;
};

// A service with a SQLite connection of its own, which does not wait for the disk when it commits.
class joined_producer final : public producer {
 public:
  joined_producer(surroundings& in, int number) : producer(in, number) {}
  ~joined_producer() override;

 private:
  void open() override;
  std::string place() override;
  void close() noexcept override;
  void run(const char* sql);

  sqlite3* own_ = nullptr;
};

class relay_actor final : public actor {
 public:
  relay_actor(surroundings& in, const std::string& name, std::string file);
  ~relay_actor() override;

 private:
  class shaky_publisher;
  void open() override;
  std::string work() override;
  void leave() noexcept override;
  void close() noexcept override;

  std::string file_;
  std::unique_ptr<database> db_;
  std::unique_ptr<broker> broker_;
  std::unique_ptr<publisher> destination_;
  std::unique_ptr<relay> relay_;
};

class consumer_actor final : public actor {
 public:
  consumer_actor(surroundings& in, int number, std::string group);

 private:
  void open() override;
  std::string work() override;
  void leave() noexcept override;
  void close() noexcept override;
  void apply(const message& m, transaction& tx);

  std::string group_;
  std::unique_ptr<database> db_;
  std::unique_ptr<broker> broker_;
  std::unique_ptr<consumer> consumer_;
};

// Replays the dead letters of a group, all at once, and does not wait for them.
class operator_actor final : public actor {
 public:
  operator_actor(surroundings& in, const std::string& group)
      : actor(in, group + "-operator"), file_(file_of(group)) {}

 private:
  void open() override { db_ = open_database(file_); }
  std::string work() override;
  void close() noexcept override { db_.reset(); }

  std::string file_;
  std::unique_ptr<database> db_;
};

// Removes published rows from the outbox, and brings the broker's log back into its file.
class housekeeper final : public actor {
 public:
  explicit housekeeper(surroundings& in) : actor(in, "housekeeper") {}

 private:
  void open() override;
  std::string work() override;
  void close() noexcept override;

  std::unique_ptr<database> orders_;
  std::unique_ptr<database> broker_;
};

}  // namespace settle::sim
