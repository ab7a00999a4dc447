#include "simulation/sim_sagas.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "settle/error.hpp"

namespace settle::sim {
namespace {

using namespace std::chrono_literals;

void note(transaction& tx, const purchase& p, const std::string& what) {
  tx.execute("insert into effects (purchase, what) values ($1, $2)", {p.id, what});
}

// A local step that leaves a row; its undo leaves another.
auto local_step(const std::string& name) {
  return local(name,
               [name](transaction& tx, const purchase& p) {
                 note(tx, p, name);
                 if (p.has(name + ":refuse")) throw step_refused("no " + name);
               })
      .undo([name](transaction& tx, const purchase& p) {
        note(tx, p, "un" + name);
        if (the_bank->undo_fails()) throw std::runtime_error("not this time");
      });
}

auto bank_step(const std::string& name) {
  return remote(name, [name](call& c, const purchase& p) { the_bank->ask(c, p, name); });
}

const auto reserve = local_step("reserve");
const auto pack = local_step("pack");
const auto charge =
    bank_step("charge").undo([](call& c, const purchase& p) { the_bank->ask(c, p, "uncharge"); });
const auto have_shipped = bank_step("ship").on_unknown(unknown::repeat);

const auto label = local_step("label");
const auto escalate = local("escalate", [](transaction& tx, const purchase& p) { note(tx, p, "escalate"); });
const auto refund = bank_step("refund")
                        .on_unknown(unknown::ask,
                                    [](call& c, const purchase& p) {
                                      return found_step<void>{the_bank->find(c, p, "refund")};
                                    })
                        .pivot();
const auto tell = local("tell", [](transaction& tx, const purchase& p) { note(tx, p, "tell"); });
const auto store_away = local("store", [](transaction& tx, const purchase& p) { note(tx, p, "store"); });
const auto close_case = local("close", [](transaction& tx, const purchase& p) { note(tx, p, "close"); });

const auto wrap = local_step("wrap");
const auto gift = bank_step("gift").on_unknown(unknown::hold);
const auto card = local("card", [](transaction& tx, const purchase& p) { note(tx, p, "card"); });

flow<> tell_in_branch(saga s, const purchase& p) { co_await s.run(tell, p); }
flow<> store_in_branch(saga s, const purchase& p) {
  co_await s.sleep(30min);
  co_await s.run(store_away, p);
}
flow<> take_back(saga& s, const purchase& p) {
  co_await s.run(label, p);
  const auto picked_up = co_await s.wait_for<pickup>(p.id, 120h);
  if (!picked_up) {
    co_await s.run(escalate, p);
    co_await s.undo("not picked up within five days");
  }
  co_await s.run(refund, p);
  auto one = tell_in_branch(s.branch(0), p);
  auto two = store_in_branch(s.branch(1), p);
  co_await s.all(one, two);
  co_await s.sleep(1h);
  co_await s.run(close_case, p);
}

}  // namespace

const saga_type<purchase> order_saga = saga_of<purchase>("order", 1, reserve, charge, pack, have_shipped);
const saga_type<purchase> return_saga("return", 1, take_back,
                                      {label, escalate, refund, tell, store_away, close_case});
const saga_type<purchase> gift_saga = saga_of<purchase>("gift", 1, wrap, gift, card);

void add_sagas(saga_host& to) {
  to.add(order_saga).add(return_saga).add(gift_saga);
  to.on<pickup>([](const pickup& p) { return p.purchase; });
}

void bank_actor::ask(call& c, const purchase& p, const std::string& effect) {
  const bank_request what{{c.saga(), c.step(), c.is_undo() ? saga_op::undo : saga_op::act, c.epoch()},
                          p.id,
                          effect,
                          p.has(effect + ":refuse")};
  if (in_.in_a_hundred(line_.not_made) || !db_) throw call_not_made("no connection");
  if (in_.in_a_hundred(line_.delayed)) {
    delayed_.push_back(what);
    throw std::runtime_error("no answer");
  }
  if (in_.in_a_hundred(line_.repeated)) delayed_.push_back(what);
  take(what);
  if (in_.in_a_hundred(line_.answer_lost)) throw std::runtime_error("the answer was lost");
}

// What has not arrived yet never will, once its undo was there.
finding bank_actor::find(call& c, const purchase& p, const std::string& effect) {
  if (!db_) throw call_not_made("no connection");
  auto tx = db_->begin();
  const auto done =
      tx.execute("select count(*) from effects where purchase = $1 and what = $2", {p.id, effect});
  if (done[0][0].integer() > 0) return finding::done;
  const auto barred = participate(tx, {c.saga(), c.step(), saga_op::undo, c.epoch()});
  if (barred.how() != participation::empty) return finding::unknown;
  tx.commit();
  return finding::never;
}

void bank_actor::take(const bank_request& what) {
  if (what.refused) throw step_refused("the bank does not " + what.effect);
  auto tx = db_->begin();
  const auto entry = participate(tx, what.what);
  if (entry.how() == participation::late) throw step_refused("it was undone before");
  if (entry.how() == participation::stale) throw std::runtime_error("somebody else is at it");
  if (entry.fresh()) {
    tx.execute("insert into effects (purchase, what) values ($1, $2)", {what.purchase, what.effect});
    entry.record(tx, "done");
  }
  tx.commit();
}

std::string bank_actor::work() {
  did_something_ = !delayed_.empty();
  if (delayed_.empty()) return "nothing is late";
  const auto which = delayed_.begin() + static_cast<std::ptrdiff_t>(in_.choices.below(delayed_.size()));
  const auto what = *which;
  delayed_.erase(which);
  try {
    take(what);
  } catch (const error& e) {
    delayed_.push_back(what);
    throw;
  } catch (const std::exception& e) {
    return fmt::format("{} of {} comes late: {}", what.effect, what.purchase, e.what());
  }
  return fmt::format("{} of {} comes late", what.effect, what.purchase);
}

host_actor::host_actor(surroundings& in, int number) : actor(in, fmt::format("host-{}", number)) {}

void host_actor::open() {
  db_ = open_database(shop_file);
  host_ = std::make_unique<saga_host>(*db_, saga_host_options{.name = "shop",
                                                              .batch_max = 1 + in_.choices.below(12),
                                                              .steps_max = in_.choices.below(5),
                                                              .call_threads = 0,
                                                              .lease_ttl = in_.lease_ttl,
                                                              .keep = std::chrono::years(10),
                                                              .mailbox_keep = std::chrono::years(10)});
  add_sagas(*host_);
}

std::string host_actor::work() {
  const auto before = host_->counts();
  did_something_ = host_->run_once();
  const auto now = host_->counts();
  return did_something_ ? fmt::format("{} steps, {} undone, {} replayed", now.steps - before.steps,
                                      now.undos - before.undos, now.replays - before.replays)
                        : "nothing is due";
}

void host_actor::close() noexcept {
  host_.reset();
  db_.reset();
}

void customer_actor::open() {
  db_ = open_database(shop_file);
  host_ = std::make_unique<saga_host>(*db_, saga_host_options{.name = "shop", .call_threads = 0});
  add_sagas(*host_);
}

void customer_actor::close() noexcept {
  host_.reset();
  db_.reset();
}

purchase customer_actor::choose() {
  constexpr const char* kinds[] = {"order", "return", "gift"};
  constexpr const char* plans[] = {"",
                                   "",
                                   "",
                                   "pack:refuse",
                                   "charge:refuse",
                                   "ship:refuse",
                                   "gift:refuse",
                                   "refund:refuse",
                                   "label:refuse"};
  return {fmt::format("{}-{}", kinds[in_.choices.below(3)], ++purchases_),
          plans[in_.choices.below(std::size(plans))]};
}

std::string customer_actor::work() {
  if (!trying_ && only_finishes) {
    did_something_ = false;
    return "has all";
  }
  const bool brings = !trying_ && purchases_ > 0 && in_.choices.below(3) == 0;
  if (brings)
    return bring(fmt::format("return-{}", 1 + in_.choices.below(static_cast<std::uint64_t>(purchases_) + 1)));
  if (!trying_) trying_ = choose();
  return start(*trying_);
}

// One whose outcome is unknown is repeated: the same one starts once.
std::string customer_actor::start(const purchase& what) {
  auto tx = db_->begin();
  tx.execute("insert into purchases (id) values ($1) on conflict (id) do nothing", {what.id});
  const auto& type = what.id.starts_with("order")    ? order_saga
                     : what.id.starts_with("return") ? return_saga
                                                     : gift_saga;
  host_->start(tx, type, what.id, what);
  tx.commit();
  confirmed.insert(what.id);
  const auto said = fmt::format("starts {} {}", what.id, what.plan);
  trying_.reset();
  return said;
}

// Whether it was in time is what the database says after its commit, whatever any clock shows.
std::string customer_actor::bring(const std::string& id) {
  brought.insert(id);
  {
    auto tx = db_->begin();
    host_->deliver(tx, "pickup of " + id, pickup{id});
    tx.commit();
  }
  const auto late = db_->read().execute(
      "select count(*) from settle_saga_journal j join settle_sagas s on s.no = j.no "
      "where s.entity_id = $1 and j.name = 'pickup' and j.kind = 9",
      {id});
  if (late[0][0].integer() == 0) in_time.insert(id);
  return fmt::format("brings the pickup of {}", id);
}

}  // namespace settle::sim
