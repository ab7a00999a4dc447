#include "cli/payload.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/failure.hpp"
#include "cli/text.hpp"
#include "settle/error.hpp"
#include "settle/event.hpp"

namespace settle::cli {
namespace {

struct close_file {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

// Stops reading at the limit: an endless stream must not fill the memory before it is refused.
std::string read_payload(const std::string& path) {
  const std::unique_ptr<std::FILE, close_file> in(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  const auto refuse = [&] {
    throw failure(errc::invalid_argument, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  };
  if (!in) refuse();
  constexpr auto bytes_max = event_limits::payload_bytes_max_default;
  std::string payload(bytes_max + 1, '\0');
  payload.resize(std::fread(payload.data(), 1, payload.size(), in.get()));
  if (std::ferror(in.get()) != 0) refuse();
  if (payload.size() > bytes_max)
    throw error(
        errc::payload_too_large,
        fmt::format("{} has more than {} bytes", path == "-" ? "standard input" : path, grouped(bytes_max)));
  return payload;
}

std::string payload_from(const std::string& text) {
  if (!text.starts_with('@')) return text;
  if (text.starts_with("@@")) return text.substr(1);
  return read_payload(text.substr(1));
}

}  // namespace settle::cli
