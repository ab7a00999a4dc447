#include "cli/each_service.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error_detail.hpp"

namespace settle::cli {

bool failures_by_name::attempt(const std::string& name, const std::function<void()>& what) {
  try {
    what();
    return true;
  } catch (const failure& e) {
    all_.push_back({name, e.code(), e.what()});
  } catch (const error& e) {
    all_.push_back({name, e.code(), std::string(detail_of(e))});
  }
  return false;
}

void failures_by_name::throw_if_any() const {
  if (all_.empty()) return;
  const auto lasting = std::ranges::find_if(all_, [](const one& of) { return !info(of.code).retryable; });
  std::string text;
  for (const auto& of : all_) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", of.name, of.message);
  throw failure(lasting == all_.end() ? all_.front().code : lasting->code, text);
}

}  // namespace settle::cli
