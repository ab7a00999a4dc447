#include <fmt/format.h>

#include <map>

#include "settle/sqlite.hpp"
#include "simulation/sim_sagas.hpp"

namespace settle::sim {
namespace {

using counted = std::map<std::string, int>;

struct judged_saga {
  std::string id, status, error;
  counted effects = {};  // in the shop and at the bank
  bool timed_out = false;
  std::int64_t alerts = 0;
};

std::map<std::string, judged_saga> read_sagas(transaction& tx) {
  const auto rows = tx.execute(
      "select s.entity_id, s.status, coalesce(s.last_error, ''), "
      "exists (select 1 from settle_saga_journal j where j.no = s.no and j.name = 'pickup' and j.kind = 9), "
      "(select count(*) from settle_outbox_events o where o.event_type = 'saga.held' and o.aggregate_id = "
      "s.id) "
      "from settle_sagas s");
  std::map<std::string, judged_saga> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    judged_saga one{.id = rows[i][0].text(), .status = rows[i][1].text(), .error = rows[i][2].text()};
    one.timed_out = rows[i][3].integer() != 0;
    one.alerts = rows[i][4].integer();
    if (!all.emplace(one.id, one).second) throw std::runtime_error("two sagas of " + one.id);
  }
  return all;
}

void add_effects(transaction& tx, std::map<std::string, judged_saga>& to,
                 std::vector<std::string>& problems) {
  const auto rows = tx.execute("select purchase, what from effects order by id");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto found = to.find(rows[i][0].text());
    if (found == to.end())
      problems.push_back(
          fmt::format("ghost: {} of {}, of which there is no saga", rows[i][1].text(), rows[i][0].text()));
    else
      ++found->second.effects[rows[i][1].text()];
  }
}

std::string described(const judged_saga& of) {
  std::string all = fmt::format("{} {}:", of.id, of.status);
  for (const auto& [what, times] : of.effects) all += fmt::format(" {}x{}", what, times);
  return all + (of.error.empty() ? "" : "; " + of.error);
}

counted expected_of(const judged_saga& completed) {
  if (completed.id.starts_with("order")) return {{"reserve", 1}, {"charge", 1}, {"pack", 1}, {"ship", 1}};
  if (completed.id.starts_with("gift")) return {{"wrap", 1}, {"gift", 1}, {"card", 1}};
  return {{"label", 1}, {"refund", 1}, {"tell", 1}, {"store", 1}, {"close", 1}};
}

// What has no undo, escalate apart, cannot have happened in a saga that was undone.
bool is_undone(const judged_saga& of) {
  const auto count = [&](const std::string& what) {
    const auto found = of.effects.find(what);
    return found == of.effects.end() ? 0 : found->second;
  };
  for (const auto* what : {"reserve", "pack", "charge", "label", "wrap"})
    if (count(what) != count(std::string("un") + what)) return false;
  for (const auto* what : {"ship", "refund", "tell", "store", "close", "gift", "card"})
    if (count(what) != 0) return false;
  return true;
}

std::string problem_of(const judged_saga& of) {
  for (const auto& [what, times] : of.effects)
    if (times > 1) return "doubled: " + described(of);
  if (of.status == "COMPLETED") return of.effects == expected_of(of) ? "" : "half done: " + described(of);
  if (of.status == "COMPENSATED") return is_undone(of) ? "" : "half undone: " + described(of);
  if (of.status == "FAILED") return of.effects.empty() ? "" : "failed with effects: " + described(of);
  if (of.status == "HELD") {
    if (of.error.empty() || of.alerts == 0) return "held without a word: " + described(of);
    return "";
  }
  return "forgotten: " + described(of);
}

}  // namespace

std::vector<std::string> check_sagas(const std::string& vfs, const environment& env,
                                     const customer_actor& customer, saga_world_result& into) {
  std::vector<std::string> problems;
  const auto shop = sqlite::open(shop_file, {.env = env, .vfs = vfs});
  const auto bank = sqlite::open(bank_file, {.env = env, .vfs = vfs});
  auto in_shop = shop->read(), in_bank = bank->read();
  auto sagas = read_sagas(in_shop);
  add_effects(in_shop, sagas, problems);
  add_effects(in_bank, sagas, problems);
  const auto noted = in_shop.execute("select id from purchases");
  if (noted.size() != sagas.size())
    problems.push_back(fmt::format("half started: {} purchases and {} sagas", noted.size(), sagas.size()));
  for (const auto& id : customer.confirmed)
    if (!sagas.contains(id)) problems.push_back("lost: " + id + " was started");
  for (const auto& [id, one] : sagas) {
    if (const auto problem = problem_of(one); !problem.empty()) problems.push_back(problem);
    if (one.timed_out && customer.in_time.contains(id))
      problems.push_back("timed out: " + id + ", and its event had come before");
    if (one.status == "COMPLETED" && id.starts_with("return") && !customer.brought.contains(id))
      problems.push_back("ghost event: " + described(one));
    ++(one.status == "COMPLETED" ? into.completed : one.status == "HELD" ? into.held : into.undone);
  }
  return problems;
}

}  // namespace settle::sim
