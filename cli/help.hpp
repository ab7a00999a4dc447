// The texts of `settle --help` and the layout of all help pages.
#pragma once

#include "cli/syntax.hpp"

namespace CLI {
class App;
}

namespace settle::cli {

// Description, examples and exit codes of the program. Call before the subcommands are added: they
// inherit the layout.
void describe_program(CLI::App& program);

// The end of a subcommand's page: its examples, and where the global options are.
void describe_command(command_syntax command, const char* examples);

}  // namespace settle::cli
