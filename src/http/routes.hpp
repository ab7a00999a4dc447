// What a router knows: paths, and for each path its methods.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/growing_log.hpp"
#include "http/refusal.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {

// What routes that are answered together have in common.
struct batch {
  batch_handler what;
  std::size_t size_max = 1;
  std::size_t at_once_max = 1;
  handler each = {};  // the middleware, and behind it batch_round::answer; empty: there is no middleware
};

struct route {
  std::string method;
  handler what;
  route_options options;
  std::shared_ptr<const batch> together = {};
};

struct segment {
  std::string text;  // of a parameter: its name
  bool is_parameter = false;
  bool operator==(const segment&) const = default;
};

// What the log was told of an outage that a path's handlers meet. Any thread.
class outage_lines {
 public:
  // True: write a line.
  bool fails(timestamp now) noexcept;
  void works(timestamp now) noexcept;

 private:
  std::atomic<bool> lasts_ = false;
  std::mutex mutex_;
  growing_log log_;
};

struct path_routes {
  std::string pattern;
  std::vector<segment> segments;
  std::vector<route> methods;
  std::string allow;       // "GET, HEAD, POST"
  std::size_t number = 0;  // for counts by path; 0 is no path
  mutable outage_lines outages;
};

struct match {
  const path_routes* path = nullptr;  // none: 404
  const route* found = nullptr;       // none: 405
  // What both are of, where it may be replaced meanwhile. Whoever goes by them keeps it.
  std::shared_ptr<const void> of = {};
};

// Sets path and query from the target, which may be `/path?query` or `http://host/path?query`.
refusal split_target(request& asked);

class router::table {
 public:
  // Sets the path's parameters in `asked`. A path that cannot be decoded is refused.
  refusal find(request& asked, match& found) const;

  route& add(std::string_view method, std::string_view pattern);
  void use(middleware what) { around_.push_back(std::move(what)); }
  handler wrapped(handler what) const;
  bool has_middleware() const { return !around_.empty(); }

  // Numbers the paths; those that were numbered before are in `known`, by pattern.
  void number_paths(std::map<std::string, std::size_t, std::less<>>& known);
  std::vector<std::shared_ptr<worker_group>> groups() const;  // each once

 private:
  struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  path_routes& path_of(std::string_view pattern);
  const path_routes* path_that_fits(request& asked, const std::vector<std::string>& segments) const;

  std::vector<std::unique_ptr<path_routes>> paths_;  // the more literal ones first
  std::unordered_map<std::string, const path_routes*, text_hash, std::equal_to<>> literal_;
  std::vector<middleware> around_;
};

// What a request without a route is answered with.
response not_found(const request& asked);
response not_allowed(const request& asked, const path_routes& path);

// 503 without a word, for which no memory is needed.
inline response bare_refusal() noexcept {
  response made;
  made.status = 503;
  return made;
}

// Calls a handler; what it throws becomes an answer.
response answer_of(const handler& what, const request& asked, const environment& env,
                   const path_routes& on) noexcept;
// Likewise, for all of them; one for each, or none at all if there is no memory for that.
std::vector<response> answers_of(const batch& of, std::span<const request* const> asked,
                                 const environment& env, const path_routes& on) noexcept;

}  // namespace settle::inline v0::http
