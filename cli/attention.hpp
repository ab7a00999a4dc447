// What needs a person. Each is one sentence, on one line, that says what to type where that helps; the most
// urgent stands first.
#pragma once

#include <string>
#include <vector>

#include "inspect/broker.hpp"
#include "inspect/service.hpp"
#include "inspect/services.hpp"

namespace settle::cli {

std::vector<std::string> attention_of(const inspect::service_state& service);
std::vector<std::string> attention_of(const inspect::broker_state& broker);

// Why a store is unknown, and what to do about it.
template <class State>
std::string why_unknown(const inspect::answer_of<State>& told) {
  auto why = told.why;
  std::erase(why, '\t');  // libpq's, before its hints
  if (info(told.code).retryable)
    why += "; see that it runs and can be reached, then ask again: `settle status`";
  return why;
}

}  // namespace settle::cli
