// What is wrong with arguments that do not parse, for the person who has typed them.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace settle::cli {

// "there is no command 'stauts'; did you mean status? See `settle --help`".
std::string why_refused(const CLI::App& program, const CLI::ParseError& e);

// Whether an option stands among the arguments, and does not only repeat this variable of the environment;
// null: it has none.
bool is_typed(const CLI::App& program, const char* name, const char* variable, const std::string& content);

// The command with this name below `within`; throws a failure that names the nearest one if there is none.
const CLI::App& command_named(const CLI::App& within, const std::string& name);

}  // namespace settle::cli
