// Where all services of a daemon stand, and the brokers between them.
//
//   services_inquiry all({{"orders", [&] { return inspect::read_service(*orders); }}}, {});
//   for (const auto& one : all.ask(std::chrono::seconds(2)).services)
//     …  // one.state, or why there is none
//
// Each is asked on a thread of its own, so one that hangs or is away delays nobody. Who asks again gets the
// answer of a question that is still under way. Threads: one asks at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bounded_ask.hpp"
#include "inspect/broker.hpp"
#include "inspect/service.hpp"
#include "settle/error.hpp"

namespace settle::inspect {

template <class State>
struct source_of {
  std::string name;
  // Opens what it needs, or uses what is open. May throw, and take as long as it likes, but must end.
  std::function<State()> read;
};
using service_source = source_of<service_state>;
using broker_source = source_of<broker_state>;

template <class State>
struct answer_of {
  std::string name;
  std::optional<State> state;  // none: nobody knows
  errc code = errc::store_unavailable;
  std::string why = {};  // there is none
};
using service_answer = answer_of<service_state>;
using broker_answer = answer_of<broker_state>;

struct services_answer {
  std::vector<service_answer> services;  // in the order of the sources
  std::vector<broker_answer> brokers;

  bool complete() const;
};

class services_inquiry {
 public:
  services_inquiry(std::vector<service_source> services, std::vector<broker_source> brokers);
  // Waits for questions that are under way.
  ~services_inquiry();
  services_inquiry(const services_inquiry&) = delete;
  services_inquiry& operator=(const services_inquiry&) = delete;

  // All at once; whoever has not answered after `at_most` is unknown.
  services_answer ask(duration at_most);

  // Whether a question is under way, so that the destructor would wait.
  bool is_waiting();

 private:
  template <class State>
  struct asked {
    explicit asked(source_of<State> from);
    std::string name;
    bounded_ask<answer_of<State>> question;
  };

  std::vector<std::unique_ptr<asked<service_state>>> services_;
  std::vector<std::unique_ptr<asked<broker_state>>> brokers_;
};

}  // namespace settle::inspect
