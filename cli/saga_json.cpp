// Sagas for machines. Fields are added, never renamed.
#include "base/encoding.hpp"
#include "base/time_text.hpp"
#include "cli/saga_text.hpp"
#include "cli/text.hpp"

namespace settle::cli {
namespace {

namespace json = boost::json;

json::value time_or_null(const std::optional<timestamp>& at) {
  return at ? json::value(to_rfc3339(*at)) : json::value();
}

// As text, or as base64 under a name of its own.
void add_bytes(json::object& to, const std::string& name, const std::optional<std::string>& bytes) {
  if (!bytes)
    to[name] = nullptr;
  else if (is_printable(*bytes))
    to[name] = *bytes;
  else
    to[name + "_base64"] = to_base64(*bytes);
}

json::object entry_json(const inspect::saga_entry& of) {
  json::object made{{"row", of.n},
                    {"what", to_string(of.what)},
                    {"name", safe_json_text(of.name)},
                    {"state", to_string(of.end)},
                    {"at", to_rfc3339(of.at)},
                    {"ended_at", time_or_null(of.ended_at)},
                    {"until", time_or_null(of.until)},
                    {"key", safe_json_text(of.key)},
                    {"why", safe_json_text(of.why)},
                    {"by_hand", safe_json_text(of.by)},
                    {"was_unknown", of.was_unknown},
                    {"undone", of.undone}};
  add_bytes(made, "result", of.result);
  return made;
}

}  // namespace

json::object line_json(const inspect::saga_line& of) {
  return {{"number", of.no},
          {"id", of.id.text()},
          {"host", safe_json_text(of.host)},
          {"type", safe_json_text(of.type)},
          {"version", of.version},
          {"entity", safe_json_text(of.entity)},
          {"status", safe_json_text(of.status)},
          {"current_step", safe_json_text(of.current_step)},
          {"attempts", of.attempts},
          {"last_error", safe_json_text(of.last_error)},
          {"calling", of.calling},
          {"due_at", time_or_null(of.due_at)},
          {"deadline", time_or_null(of.deadline)},
          {"created_at", to_rfc3339(of.created_at)},
          {"updated_at", to_rfc3339(of.updated_at)},
          {"ended_at", time_or_null(of.ended_at)},
          {"processes", of.processes}};
}

json::object saga_json(const inspect::saga_state& of) {
  auto made = line_json(of.line);
  made["parent"] = of.parent ? json::value(of.parent->text()) : json::value();
  made["ordered"] = of.ordered ? json::value(safe_json_text(*of.ordered)) : json::value();
  add_bytes(made, "input", of.input);
  add_bytes(made, "result", of.result);
  json::array timeline, next;
  for (const auto& one : of.timeline) timeline.push_back(entry_json(one));
  for (const auto& one : possible_orders(of))
    next.push_back({{"order", one.order}, {"command", one.command}, {"effect", safe_json_text(one.effect)}});
  made["timeline"] = std::move(timeline);
  made["possible_orders"] = std::move(next);
  return made;
}

}  // namespace settle::cli
