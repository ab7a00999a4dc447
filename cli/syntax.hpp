// What a command takes: its options and arguments, and the commands below it.
//
//   auto command = to.add_subcommand("tail", "Print the messages of a topic.");
//   command.add_option("--last", wanted->last, "Begin with the last N messages").option_text("N").between(0,
//   100);
//
// CLI11 stands behind it, which takes ten seconds to compile; so few source files include that. Both classes
// are handles: copies mean the same option or command, which lives as long as the program's.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace settle::cli {

class option_syntax {
 public:
  explicit option_syntax(CLI::Option& of) : of_(&of) {}

  // What stands for the value in the help; " " for nothing.
  option_syntax option_text(const std::string& text) const;
  option_syntax required(bool is = true) const;
  // Taken from this variable of the environment where it is not given.
  option_syntax envname(const std::string& variable) const;
  option_syntax needs(option_syntax other) const;
  option_syntax excludes(option_syntax other) const;
  // Of several values: in one argument, with this between them.
  option_syntax delimiter(char between) const;
  // Of several values: the option is repeated for each.
  option_syntax one_value_each() const;

  template <std::integral Number>
  option_syntax between(Number min, Number max) const {
    return between_whole(static_cast<std::int64_t>(min), static_cast<std::int64_t>(max));
  }
  option_syntax between(double min, double max) const;
  option_syntax positive() const;
  option_syntax not_negative() const;
  option_syntax one_of(const std::vector<std::string>& words) const;

 private:
  option_syntax between_whole(std::int64_t min, std::int64_t max) const;

  CLI::Option* of_;
};

class command_syntax {
 public:
  explicit command_syntax(CLI::App& of) : of_(&of) {}

  command_syntax add_subcommand(const std::string& name, const std::string& about) const;
  // One of those below it has to be named.
  void require_subcommand() const;

  // `--name`, or NAME for an argument by its place. The value's types are those that syntax.cpp lists.
  template <class Value>
  option_syntax add_option(const std::string& name, Value& to, const std::string& about) const;
  option_syntax add_flag(const std::string& name, bool& to, const std::string& about) const;

  // Called when the arguments have named this command.
  void callback(std::function<void()> what) const;

  // For the few that need more than this.
  CLI::App& app() const { return *of_; }

 private:
  CLI::App* of_;
};

}  // namespace settle::cli
