// One source of webhooks as the file declares it, in a table [webhook.NAME]. webhook_option_table.cpp says
// what each field means; the file, --print-config and the reference page come from that table.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "settle/webhook.hpp"

namespace settle::config {

// Most tables [webhook.NAME] of a file: each is a route, and is looked after by the worker in turn.
constexpr std::size_t webhook_sources_max = 100;

struct webhook_settings {
  // For the library. Its keys are what keys_env and keys_file name; no option shows them. What cannot work
  // there is refused when its inbox is made.
  webhook::source source = {};
  std::string topic = {};
  std::string keys_env = {};
  std::string keys_file = {};
};

// What holds where the file says nothing: topic is the name, the places are those of the library's own source
// of this scheme.
webhook_settings webhook_defaults(std::string_view name, std::string_view scheme);

// "stripe", "standard", "hmac"; anything else is taken for the last one.
std::string_view word_of(webhook::scheme of);
webhook::scheme scheme_of(std::string_view word);

// "json:data.object.id" or "header:webhook-id"; nothing if it is neither. The text of none is empty.
std::optional<webhook::place> read_place(std::string_view text);
std::string text_of(const webhook::place& at);

}  // namespace settle::config
