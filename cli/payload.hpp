// The content of an event as it is given on the command line.
#pragma once

#include <string>

namespace settle::cli {

// Of a file, or of standard input for "-". Throws payload_too_large above the limit of events.
std::string read_payload(const std::string& path);

// TEXT, @FILE, @- for standard input, or @@TEXT for one that begins with @.
std::string payload_from(const std::string& text);

}  // namespace settle::cli
