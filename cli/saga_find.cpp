#include "cli/saga_find.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "cli/failure.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

constexpr std::size_t shown_max = 5;

saga_id only_one(const std::vector<inspect::saga_line>& all, const std::string& entity) {
  if (all.size() == 1) return all.front().id;
  const auto open = std::ranges::count_if(all, [](const auto& one) { return !one.has_ended(); });
  if (open == 1) return std::ranges::find_if(all, [](const auto& one) { return !one.has_ended(); })->id;
  std::string list;
  for (const auto& one : all)
    list += fmt::format("{}{} ({}, {})", list.empty() ? "" : ", ", one.id.text(), for_terminal(one.type),
                        one.status);
  throw failure(errc::invalid_argument, fmt::format("there are several sagas of {}, say which by its id: {}",
                                                    for_terminal(entity), list));
}

}  // namespace

inspect::saga_state find_saga(database& db, const std::string& id_or_entity) {
  if (const auto id = saga_id::parse(id_or_entity))
    if (auto found = inspect::read_saga(db, *id)) return *found;
  inspect::saga_filter of{
      .statuses = {"RUNNING", "COMPENSATING", "HELD", "COMPLETED", "COMPENSATED", "FAILED"},
      .entity = id_or_entity};
  const auto all = inspect::list_sagas(db, of, shown_max);
  if (all.empty())
    throw failure(errc::invalid_argument,
                  fmt::format("there is no saga {}, by id or by entity, in {}; see `settle saga list`",
                              for_terminal(id_or_entity), db.name()));
  return read_again(db, only_one(all, id_or_entity));
}

inspect::saga_state read_again(database& db, saga_id id) {
  auto found = inspect::read_saga(db, id);
  if (!found)
    throw failure(errc::invalid_argument, fmt::format("the saga {} has been removed meanwhile", id.text()));
  return std::move(*found);
}

std::string operator_name(const std::string& given) {
  if (!given.empty()) return given;
  const auto* user = ::getpwuid(::geteuid());
  return user != nullptr && *user->pw_name != '\0' ? user->pw_name : fmt::format("uid {}", ::geteuid());
}

void require_reason(const std::string& reason, const char* where) {
  if (reason.empty())
    throw failure(errc::invalid_argument, fmt::format("say why with --reason TEXT: it {}", where));
}

}  // namespace settle::cli
