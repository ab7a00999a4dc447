#include "wire/attribute_names.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace settle::inline v0 {
namespace {

using enum attribute_writer;

constexpr std::array reserved{
    reserved_attribute{"causationid", cause},
    reserved_attribute{"correlationid", cause},
    reserved_attribute{"data", cloudevents},
    reserved_attribute{"datacontenttype", cloudevents},
    reserved_attribute{"dataschema", cloudevents},
    reserved_attribute{"id", cloudevents},
    reserved_attribute{"naturalkey", natural_key},
    reserved_attribute{"partitionkey", cloudevents},
    reserved_attribute{"sequence", relay},
    reserved_attribute{"settledatabase", relay},
    reserved_attribute{"settledlqattempts", dead_letter},
    reserved_attribute{"settledlqconsumer", dead_letter},
    reserved_attribute{"settledlqerror", dead_letter},
    reserved_attribute{"settledlqfailedat", dead_letter},
    reserved_attribute{"settledlqoffset", dead_letter},
    reserved_attribute{"settledlqpartition", dead_letter},
    reserved_attribute{"settledlqreason", dead_letter},
    reserved_attribute{"settledlqtopic", dead_letter},
    reserved_attribute{"settleoutoforder", replay_note},
    reserved_attribute{"settleplace", relay},
    reserved_attribute{"settlereplay", replay_note},
    reserved_attribute{"settlereplayfor", replay_mark},
    reserved_attribute{"settlereplayof", replay_mark},
    reserved_attribute{"source", cloudevents},
    reserved_attribute{"specversion", cloudevents},
    reserved_attribute{"subject", cloudevents},
    reserved_attribute{"time", cloudevents},
    reserved_attribute{"traceparent", cause},
    reserved_attribute{"tracestate", cause},
    reserved_attribute{"type", cloudevents},
};
static_assert(std::ranges::is_sorted(reserved, {}, &reserved_attribute::name));

constexpr std::string_view old_prefix = "settle-dlq-";

bool is_name_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool may_be_sent(std::string_view name, std::span<const attribute_writer> allowed) {
  const auto writer = writer_of(name);
  return !writer || std::ranges::find(allowed, *writer) != allowed.end();
}

std::string letters_and_digits(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (is_name_letter(lower)) out += lower;
  }
  return out;
}

void note(std::string& changes, std::string_view from, std::string_view to) {
  if (!changes.empty()) changes += ", ";
  changes.append("'").append(from).append("'").append(to.empty() ? " left out" : " to ").append(to);
}

}  // namespace

std::span<const reserved_attribute> reserved_attributes() { return reserved; }

std::optional<attribute_writer> writer_of(std::string_view name) {
  const auto found = std::ranges::lower_bound(reserved, name, {}, &reserved_attribute::name);
  if (found == reserved.end() || found->name != name) return std::nullopt;
  return found->writer;
}

bool is_attribute_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, is_name_letter);
}

std::string set_aside(std::string_view reserved_name) { return "header" + std::string(reserved_name); }

checked_headers check_headers(attributes given, std::span<const attribute_writer> allowed) {
  const auto in_order = [&](const attributes::value_type& one) {
    return is_attribute_name(one.first) && may_be_sent(one.first, allowed) &&
           std::ranges::none_of(one.second, is_control);
  };
  if (std::ranges::all_of(given, in_order)) return {std::move(given), {}};
  checked_headers checked;
  std::vector<attributes::node_type> others;  // after those that keep their names
  for (auto at = given.begin(); at != given.end();) {
    const auto one = at++;
    std::ranges::replace_if(one->second, is_control, ' ');
    if (in_order(*one))
      checked.extensions.insert(given.extract(one));
    else
      others.push_back(given.extract(one));
  }
  for (auto& one : others) {
    auto name = letters_and_digits(one.key());
    if (!name.empty() && !may_be_sent(name, allowed)) name = set_aside(name);
    const bool fits = !name.empty() && checked.extensions.emplace(name, std::move(one.mapped())).second;
    note(checked.changes, one.key(), fits ? name : "");
  }
  return checked;
}

void rename_old_attributes(attributes& of) {
  for (auto at = of.lower_bound(old_prefix); at != of.end() && at->first.starts_with(old_prefix);) {
    auto old = of.extract(at++);
    auto name = letters_and_digits(old.key());
    of.emplace(std::move(name), std::move(old.mapped()));
  }
}

}  // namespace settle::inline v0
