#include "isolation/caller_specs.hpp"

#include "settle/once.hpp"
#include "settle/webhook.hpp"
#include "support/webhook_signer.hpp"

namespace settle::isolation {
namespace {

std::string both(callers_world& in) { return in.said("left") + " " + in.said("right"); }

bool one_has_taken(callers_world& in) {
  return both(in) == "taken insufficient" || both(in) == "insufficient taken";
}

void do_a_deed(transaction& tx) { tx.execute("insert into deeds (what) values ('x')"); }

std::string ask(transaction& tx) {
  const auto done = once(tx, {"shop", "ann", "k"}, [](transaction& inner) {
    do_a_deed(inner);
    return answer{.body = "thanks"};
  });
  return std::string(to_string(done.outcome));
}

// Signed by the clock of whoever gets it.
std::string deliver(const webhook::inbox& to, transaction& tx) {
  const std::string body = R"({"id":"evt_1","type":"paid","created":1,"data":{"object":{"id":"7"}}})";
  const auto signature = test::stripe_signature("secret", tx.env().now(), body);
  const auto done = to.apply(tx, {.headers = {{"Stripe-Signature", signature}}, .body = body},
                             [](const webhook::received&, transaction& inner) {
                               do_a_deed(inner);
                               return webhook::answer::done;
                             });
  return std::string(to_string(done.what));
}

// Two that commit and one that gives up. However they met, the next one finds or makes one effect.
exploration explore_meeting(callers_world& in, const std::function<std::string(transaction&)>& call,
                            const std::string& ran) {
  in.add("first", call);
  in.add("second", call);
  in.add("gives_up", call, false);
  return in.explore([&in, call, ran]() -> std::string {
    const auto runs = (in.said("first") == ran) + (in.said("second") == ran);
    const auto told = in.said("first") + ", " + in.said("second");
    if (runs != in.deeds()) return std::to_string(in.deeds()) + " effects, but " + told;
    if (runs > 1) return "both have run: " + told;
    auto tx = in.control().begin();
    const auto later = call(tx);
    tx.commit();
    return in.deeds() == 1 ? "" : std::to_string(in.deeds()) + " effects after " + told + ", " + later;
  });
}

}  // namespace

exploration movers_of_one_row(callers_world& in) {
  const auto moving = [&in](const char* to) {
    return [&in, to](transaction& tx) {
      const auto done = in.orders.move(tx, 1, to);
      return std::string(to_string(done.outcome)) + " " + done.state;
    };
  };
  in.add("payer", moving("PAID"));
  in.add("second", moving("PAID"));
  in.add("canceller", moving("CANCELLED"));
  return in.explore([&in]() -> std::string {
    const bool paid = in.state() == "PAID";
    int moved = in.said("canceller") == "moved CANCELLED";
    for (const auto* name : {"payer", "second"}) moved += in.said(name) == "moved PAID";
    if (moved != 1) return std::to_string(moved) + " have moved it";
    for (const auto* name : {"payer", "second"}) {
      const auto& said = in.said(name);
      if (!paid && said != "conflict CANCELLED") return std::string(name) + " was told " + said;
      if (paid && said != "moved PAID" && said != "unchanged PAID") return said;
    }
    if (paid && in.said("canceller") != "conflict PAID")
      return "the canceller was told " + in.said("canceller");
    return in.moves_noted() == "1" ? "" : in.moves_noted() + " moves in the history";
  });
}

exploration takers_of_the_rest(callers_world& in) {
  const auto taking = [&in](transaction& tx) {
    return std::string(to_string(in.seats.take(tx, 1, 2).outcome));
  };
  in.add("left", taking);
  in.add("right", taking);
  return in.explore([&in] {
    return one_has_taken(in) && in.seats_left() == "1,3" && in.log_sum() == "-2"
               ? std::string()
               : both(in) + ", seats " + in.seats_left();
  });
}

exploration baskets_in_opposite_order(callers_world& in) {
  const auto taking = [&in](std::vector<quantity_line> basket) {
    return [&in, basket](transaction& tx) {
      return std::string(to_string(in.seats.take_all(tx, basket).outcome));
    };
  };
  in.add("left", taking({{1, 2}, {2, 2}}));
  in.add("right", taking({{2, 2}, {1, 2}}));
  return in.explore([&in] {
    return one_has_taken(in) && in.seats_left() == "1,1" && in.log_sum() == "-4"
               ? std::string()
               : both(in) + ", seats " + in.seats_left();
  });
}

exploration requests_with_one_key(callers_world& in) { return explore_meeting(in, ask, "executed"); }

exploration deliveries_of_one_webhook(callers_world& in) {
  const auto to = std::make_shared<const webhook::inbox>(webhook::stripe("payments", {"secret"}));
  return explore_meeting(in, [to](transaction& tx) { return deliver(*to, tx); }, "applied");
}

}  // namespace settle::isolation
