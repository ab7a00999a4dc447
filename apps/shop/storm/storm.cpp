#include "storm/storm.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "audit/audit.hpp"
#include "service.hpp"
#include "settle/error.hpp"
#include "stores.hpp"
#include "storm/buyer.hpp"
#include "storm/processes.hpp"

namespace shop {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct plan {
  int orders = 1000, buyers = 16, products = 20;
  double chaos = 0.5;
  std::uint64_t seed = 1;
  config of;
};

plan plan_of(const options& given) {
  plan made;
  made.orders = static_cast<int>(given.number("orders", made.orders));
  made.buyers = static_cast<int>(given.number("users", made.buyers));
  made.products = static_cast<int>(given.number("products", made.products));
  const auto level = given.number("chaos", 5);
  if (level > 10) throw usage_error("--chaos goes from 0 to 10");
  if (made.orders < 1 || made.buyers < 1 || made.buyers > 500 || made.products < 1)
    throw usage_error("--orders, --users (at most 500) and --products have to be above zero");
  made.chaos = static_cast<double>(level) / 10;
  made.seed = static_cast<std::uint64_t>(given.number("seed", 1));
  made.of.folder = given.text("folder", "shop-storm");
  made.of.broker = given.text("broker");
  made.of.payment_window = std::chrono::seconds(8);
  made.of.hold = std::chrono::minutes(2);
  made.of.gateway = {.seed = made.seed,
                     .declined = 0.04,
                     .silent = 0.02 * made.chaos,
                     .late = 0.02 * made.chaos,
                     .duplicated = 0.5 * made.chaos,
                     .forged = 0.05 * made.chaos,
                     .failing = 0.2 * made.chaos,
                     .lost_answer = 0.2 * made.chaos,
                     .late_by = std::chrono::seconds(10)};
  // "host=… dbname=shop_{service}": each service has its own.
  const auto database = given.text("database");
  for (const auto& name : service_names()) {
    auto where = database;
    for (std::size_t at; (at = where.find("{service}")) != std::string::npos;) where.replace(at, 9, name);
    made.of.services[name].database = where;
  }
  return made;
}

// The folder is the storm's own: what an earlier one has left is removed, and nothing else.
void make_folder(const config& of) {
  const std::filesystem::path folder = of.folder, mark = folder / "shop-storm.json";
  if (std::filesystem::exists(folder) && !std::filesystem::is_empty(folder) && !std::filesystem::exists(mark))
    throw usage_error("the folder " + of.folder + " holds something else than an earlier storm");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(mark) << write_config(of) << '\n';
}

class stage {
 public:
  explicit stage(const plan& with) : plan_(with), chance_(with.seed), began_(clock::now()) {
    make_folder(plan_.of);
    for (const auto& name : service_names()) {
      // Made here, one after the other: two processes need not race for the schema.
      create_tables(*open_database(plan_.of.of(name).database), name);
      processes_.push_back(std::make_unique<service_process>(name, plan_.of.folder + "/shop-storm.json",
                                                             plan_.of.folder + "/" + name + ".log"));
    }
    broker_ = open_broker(plan_.of.broker_place());
    for (auto& one : processes_) one->start();
    order_db_ = open_database(plan_.of.of("order").database);
  }

  double seconds() const { return std::chrono::duration<double>(clock::now() - began_).count(); }

  // Some accident now and then, and what the last one has left.
  void disturb() {
    check();
    if (frozen_ != nullptr && clock::now() > thaw_at_) {
      frozen_->thaw();
      frozen_ = nullptr;
    }
    if (plan_.chaos == 0 || clock::now() < next_) return;
    const auto pause = milliseconds(static_cast<int>(600 / plan_.chaos));
    next_ = clock::now() + pause / 2 + milliseconds(chance_() % static_cast<std::uint64_t>(pause.count()));
    auto& victim = *processes_[chance_() % processes_.size()];
    if (frozen_ == nullptr && chance_() % 6 == 0) {
      victim.freeze();
      frozen_ = &victim;
      thaw_at_ = clock::now() + milliseconds(3500);  // longer than any lease
      ++frozen_count_;
    } else if (&victim != frozen_) {
      victim.kill();
      victim.start();
      ++killed_;
    }
  }

  void check() {
    for (auto& one : processes_) one->check();
  }

  void calm_down() {
    if (frozen_ != nullptr) frozen_->thaw();
    frozen_ = nullptr;
  }

  void show(std::int64_t bought) {
    std::int64_t under_way = 0, processing = 0, cancelled = 0;
    try {
      auto tx = order_db_->read();
      const auto found = tx.execute("select status, count(*) from orders group by status");
      for (std::size_t i = 0; i < found.size(); ++i) {
        const auto status = found[i][0].text();
        (status == "PROCESSING"  ? processing
         : status == "CANCELLED" ? cancelled
                                 : under_way) += found[i][1].integer();
      }
    } catch (const settle::error& e) {
      if (!e.retryable()) throw;
    }
    const bool screen = ::isatty(STDOUT_FILENO) == 1;
    if (!screen && seconds() - shown_at_ < 2) return;
    shown_at_ = seconds();
    std::printf(
        "%s%6.1f s  %lld of %d bought; %lld orders under way, %lld processing, %lld cancelled; %d killed, %d "
        "frozen%s",
        screen ? "\r\033[K" : "", seconds(), static_cast<long long>(bought), plan_.orders,
        static_cast<long long>(under_way), static_cast<long long>(processing),
        static_cast<long long>(cancelled), killed_, frozen_count_, screen ? "" : "\n");
    std::fflush(stdout);
    undecided_ = under_way;
  }
  std::int64_t undecided() const { return undecided_; }

  void end() {
    for (auto& one : processes_) one->stop();
    if (::isatty(STDOUT_FILENO) == 1) std::printf("\r\033[K");
  }

  int killed() const { return killed_; }
  int frozen() const { return frozen_count_; }
  settle::database& orders() { return *order_db_; }

 private:
  const plan& plan_;
  std::mt19937_64 chance_;
  clock::time_point began_, next_ = clock::now() + milliseconds(700), thaw_at_;
  std::unique_ptr<settle::broker> broker_;
  std::vector<std::unique_ptr<service_process>> processes_;
  std::unique_ptr<settle::database> order_db_;
  service_process* frozen_ = nullptr;
  double shown_at_ = -10;
  std::int64_t undecided_ = 0;
  int killed_ = 0, frozen_count_ = 0;
};

// Products, and more than enough of most of them; of every tenth too little, so that some buyers are refused.
void fill_shelves(const plan& with) {
  http_client orders([&] { return port_of(with.of, "order"); });
  http_client warehouse([&] { return port_of(with.of, "warehouse"); });
  const auto send = [](http_client& to, const http_call& what) {
    const auto done = settle::retry_request(
        settle::request_key::make(), [&](const auto&, const auto&) { return to.send(what); },
        {.attempts_max = 300, .first_wait = milliseconds(20), .wait_max = milliseconds(200)});
    if (done.answer.status < 200 || done.answer.status >= 300)
      throw std::runtime_error("cannot fill the shelves: " + what.target + " says " +
                               std::to_string(done.answer.status) + " " + done.answer.body);
  };
  for (int i = 0; i < with.products; ++i) {
    const auto sku = "sku-" + std::to_string(i);
    const auto quantity = i % 10 == 9 ? with.orders / with.products / 2 + 1 : with.orders * 6;
    send(orders, {.method = "PUT",
                  .target = "/products/" + sku,
                  .body = "{\"name\":\"" + sku + "\",\"price_cents\":" + std::to_string(100 + 50 * i) + "}"});
    send(warehouse, {.method = "POST",
                     .target = "/receipts",
                     .headers = {{"X-User", "clerk"}},
                     .body = "{\"receipt_id\":\"receipt-" + sku + "\",\"sku\":\"" + sku +
                             "\",\"quantity\":" + std::to_string(quantity) + "}"});
  }
}

// Until the goods can be sold: they are announced by events.
void wait_for_goods(stage& on, const plan& with) {
  const auto give_up = clock::now() + std::chrono::seconds(30);
  while (clock::now() < give_up) {
    auto tx = on.orders().read();
    if (tx.execute("select count(*) from products where in_stock > 0")[0][0].integer() == with.products)
      return;
    std::this_thread::sleep_for(milliseconds(20));
  }
  throw std::runtime_error("the goods do not arrive; see the logs in " + with.of.folder);
}

buyer_report let_them_buy(stage& on, const plan& with) {
  const buyer_settings settings{
      .of = with.of, .seed = with.seed, .chaos = with.chaos, .products = with.products};
  std::vector<std::unique_ptr<buyer>> buyers;
  for (int i = 0; i < with.buyers; ++i) buyers.push_back(std::make_unique<buyer>(settings, i));
  std::atomic<int> next = 0, bought = 0, at_work = with.buyers;
  std::vector<std::jthread> threads;
  for (auto& one : buyers)
    threads.emplace_back([&, b = one.get()](std::stop_token stop) {
      for (int action; !stop.stop_requested() && (action = next++) < with.orders; ++bought)
        b->buy(action, stop);
      --at_work;
    });
  while (at_work > 0) {
    on.disturb();
    on.show(bought);
    std::this_thread::sleep_for(milliseconds(100));
  }
  threads.clear();
  on.calm_down();
  buyer_report all;
  for (const auto& one : buyers) all.add(one->report());
  return all;
}

// Orders whose payment never comes are cancelled after their time; what is late arrives. Then nothing moves.
audit_report wait_for_the_end(stage& on, const plan& with) {
  const auto give_up = clock::now() + std::chrono::seconds(180);
  while (true) {
    on.check();
    on.show(with.orders);
    if (on.undecided() == 0 || clock::now() > give_up) {
      auto report = audit(with.of);
      if (report.clean() || clock::now() > give_up) return report;
    }
    std::this_thread::sleep_for(milliseconds(300));
  }
}

// Whoever was told of an order finds it.
std::int64_t orders_that_are_gone(stage& on, const buyer_report& told) {
  std::set<std::string> there;
  auto tx = on.orders().read();
  const auto found = tx.execute("select id from orders");
  for (std::size_t i = 0; i < found.size(); ++i) there.insert(found[i][0].text());
  return std::ranges::count_if(told.order_ids, [&](const auto& id) { return !there.contains(id); });
}

void print_buyers(const buyer_report& told) {
  std::printf(
      "  %lld buys: %lld requests, %lld hung up on, %lld double clicks; %zu orders placed, %lld cancelled by "
      "their buyers",
      static_cast<long long>(told.actions), static_cast<long long>(told.attempts),
      static_cast<long long>(told.hung_up), static_cast<long long>(told.double_clicks), told.order_ids.size(),
      static_cast<long long>(told.cancelled));
  for (const auto& [code, times] : told.refusals) std::printf(", %d %s", times, code.c_str());
  std::printf("\n");
  for (const auto& complaint : told.complaints) std::printf("  COMPLAINT  %s\n", complaint.c_str());
}

}  // namespace

int storm(const options& given) {
  sigset_t all;
  sigemptyset(&all);
  sigaddset(&all, SIGINT);
  sigaddset(&all, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  const auto with = plan_of(given);
  std::printf("A storm of %d orders by %d buyers, chaos %.0f of 10, seed %llu, in %s\n", with.orders,
              with.buyers, with.chaos * 10, static_cast<unsigned long long>(with.seed),
              with.of.folder.c_str());
  stage on(with);
  fill_shelves(with);
  wait_for_goods(on, with);
  const auto bought_from = on.seconds();
  const auto told = let_them_buy(on, with);
  const auto bought_in = on.seconds() - bought_from;
  auto report = wait_for_the_end(on, with);
  on.end();
  const auto gone = orders_that_are_gone(on, told);
  std::printf("%.0f s, %.0f orders/s while they bought; %d processes killed, %d stopped past their lease\n",
              on.seconds(), static_cast<double>(told.order_ids.size()) / bought_in, on.killed(), on.frozen());
  print_buyers(told);
  std::fputs(to_text(report).c_str(), stdout);
  const bool well = report.clean() && gone == 0 && told.complaints.empty();
  std::printf("%s: %lld lost, %lld doubled, %lld stuck.\n", well ? "Verdict: all is well" : "Verdict: BROKEN",
              static_cast<long long>(report.lost + gone), static_cast<long long>(report.doubled),
              static_cast<long long>(report.stuck));
  if (told.unknown > 0)
    std::printf("%lld buyers never heard what became of their orders.\n",
                static_cast<long long>(told.unknown));
  return well ? 0 : 1;
}

}  // namespace shop
