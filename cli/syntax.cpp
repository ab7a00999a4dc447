#include "cli/syntax.hpp"

#include <CLI/CLI.hpp>

namespace settle::cli {

option_syntax option_syntax::option_text(const std::string& text) const {
  return option_syntax(*of_->option_text(text));
}
option_syntax option_syntax::required(bool is) const { return option_syntax(*of_->required(is)); }
option_syntax option_syntax::envname(const std::string& variable) const {
  return option_syntax(*of_->envname(variable));
}
option_syntax option_syntax::needs(option_syntax other) const {
  return option_syntax(*of_->needs(other.of_));
}
option_syntax option_syntax::excludes(option_syntax other) const {
  return option_syntax(*of_->excludes(other.of_));
}
option_syntax option_syntax::delimiter(char between) const { return option_syntax(*of_->delimiter(between)); }
option_syntax option_syntax::one_value_each() const { return option_syntax(*of_->allow_extra_args(false)); }

option_syntax option_syntax::between_whole(std::int64_t min, std::int64_t max) const {
  return option_syntax(*of_->check(CLI::Range(min, max)));
}
option_syntax option_syntax::between(double min, double max) const {
  return option_syntax(*of_->check(CLI::Range(min, max)));
}
option_syntax option_syntax::positive() const { return option_syntax(*of_->check(CLI::PositiveNumber)); }
option_syntax option_syntax::not_negative() const {
  return option_syntax(*of_->check(CLI::NonNegativeNumber));
}
option_syntax option_syntax::one_of(const std::vector<std::string>& words) const {
  return option_syntax(*of_->check(CLI::IsMember(words)));
}

command_syntax command_syntax::add_subcommand(const std::string& name, const std::string& about) const {
  return command_syntax(*of_->add_subcommand(name, about));
}
void command_syntax::require_subcommand() const { of_->require_subcommand(1); }

option_syntax command_syntax::add_flag(const std::string& name, bool& to, const std::string& about) const {
  return option_syntax(*of_->add_flag(name, to, about));
}
void command_syntax::callback(std::function<void()> what) const { of_->callback(std::move(what)); }

template <class Value>
option_syntax command_syntax::add_option(const std::string& name, Value& to, const std::string& about) const {
  return option_syntax(*of_->add_option(name, to, about));
}

#define SETTLE_TAKES(value) \
  template option_syntax command_syntax::add_option(const std::string&, value&, const std::string&) const

SETTLE_TAKES(std::string);
SETTLE_TAKES(int);
SETTLE_TAKES(std::int64_t);
SETTLE_TAKES(std::size_t);
SETTLE_TAKES(double);
SETTLE_TAKES(std::vector<std::string>);
SETTLE_TAKES(std::vector<std::int64_t>);
SETTLE_TAKES(std::vector<std::size_t>);

}  // namespace settle::cli
