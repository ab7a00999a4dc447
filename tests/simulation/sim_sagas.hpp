// The sagas of the simulated shop, and the bank on the other side of a line that loses, delays and repeats.
// The bank has a database and a process of its own, and the guard of settle/participate.hpp.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "settle/participate.hpp"
#include "settle/saga.hpp"
#include "simulation/sim_actors.hpp"
#include "simulation/sim_saga_world.hpp"

namespace settle::sim {

inline constexpr const char* shop_file = "shop.db";
inline constexpr const char* bank_file = "bank.db";
inline constexpr const char* effects_table =
    "create table effects (id integer primary key, purchase text not null, what text not null)";

// What somebody buys, or sends back, and what goes wrong with it: words like "pack:refuse".
struct purchase {
  std::string id;
  std::string plan = {};
  bool has(const std::string& word) const { return plan.find(word) != std::string::npos; }
};

struct pickup {
  std::string purchase;
};

}  // namespace settle::sim

template <>
struct settle::codec<settle::sim::purchase> {
  static std::string encode(const sim::purchase& p) { return p.id + "|" + p.plan; }
  static sim::purchase decode(std::string_view bytes) {
    const auto bar = bytes.find('|');
    return {std::string(bytes.substr(0, bar)), std::string(bytes.substr(bar + 1))};
  }
};

template <>
struct settle::codec<settle::sim::pickup> {
  static constexpr std::string_view topic = "pickups";
  static constexpr std::string_view type = "pickup";
  static std::string key(const sim::pickup& p) { return p.purchase; }
  static std::string encode(const sim::pickup& p) { return p.purchase; }
  static sim::pickup decode(std::string_view bytes) { return {std::string(bytes)}; }
};

namespace settle::sim {

// reserve, charge at the bank, pack, have the bank ship: a list of steps.
extern const saga_type<purchase> order_saga;
// label, wait five days for the pickup or escalate and undo, refund at the bank, two branches, sleep, close.
extern const saga_type<purchase> return_saga;
// wrap, a gift of the bank that cannot be undone and that nobody repeats, card.
extern const saga_type<purchase> gift_saga;

void add_sagas(saga_host& to);

// In a hundred requests.
struct line_troubles {
  int not_made = 0;
  int delayed = 0;  // arrives later, or much later; the caller hears nothing
  int repeated = 0;
  int answer_lost = 0;
  int undo_fails = 0;  // of local undos
};

struct bank_request {
  saga_call what;
  std::string purchase;
  std::string effect;
  bool refused = false;  // and so is every copy of it
};

class bank_actor final : public actor {
 public:
  bank_actor(surroundings& in, line_troubles& line) : actor(in, "bank"), line_(line) {}

  // What steps call, through the line.
  void ask(call& c, const purchase& p, const std::string& effect);
  finding find(call& c, const purchase& p, const std::string& effect);

  bool has_delayed() const { return !delayed_.empty(); }
  bool undo_fails() const { return in_.in_a_hundred(line_.undo_fails); }

 private:
  void open() override { db_ = open_database(bank_file); }
  std::string work() override;  // takes a request that was delayed
  void close() noexcept override { db_.reset(); }

  void take(const bank_request& what);

  line_troubles& line_;
  std::unique_ptr<database> db_;
  std::deque<bank_request> delayed_;
};

// Whom the steps of this machine call.
inline bank_actor* the_bank = nullptr;

class host_actor final : public actor {
 public:
  host_actor(surroundings& in, int number);

 private:
  void open() override;
  std::string work() override;
  void leave() noexcept override { host_->leave(); }
  void close() noexcept override;

  std::unique_ptr<database> db_;
  std::unique_ptr<saga_host> host_;
};

// Starts sagas, in the transaction that notes the purchase; and brings events.
class customer_actor final : public actor {
 public:
  explicit customer_actor(surroundings& in) : actor(in, "customer") {}

  std::set<std::string> confirmed;  // purchases whose commit returned
  std::set<std::string> in_time;    // pickups that were stored while their wait had not timed out
  std::set<std::string> brought;    // that may be stored
  bool owes() const { return trying_.has_value(); }
  bool only_finishes = false;

 private:
  void open() override;
  std::string work() override;
  void close() noexcept override;
  std::string start(const purchase& what);
  std::string bring(const std::string& id);
  purchase choose();

  std::unique_ptr<database> db_;
  std::unique_ptr<saga_host> host_;
  std::optional<purchase> trying_;
  int purchases_ = 0;
};

// What is wrong when the machine has come to rest.
std::vector<std::string> check_sagas(const std::string& vfs, const environment& env,
                                     const customer_actor& customer, saga_world_result& into);

}  // namespace settle::sim
