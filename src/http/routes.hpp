// What a router knows: paths, and for each path its methods.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "http/refusal.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {

// What routes that are answered together have in common.
struct batch {
  batch_handler what;
  std::size_t size_max = 1;
  std::size_t at_once_max = 1;
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

struct path_routes {
  std::string pattern;
  std::vector<segment> segments;
  std::vector<route> methods;
  std::string allow;       // "GET, HEAD, POST"
  std::size_t number = 0;  // for tables beside this one; 0 is no path
};

struct match {
  const path_routes* path = nullptr;  // none: 404
  const route* found = nullptr;       // none: 405
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

  std::size_t paths() const { return paths_.size(); }

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

// Calls a handler; what it throws becomes an answer.
response answer_of(const handler& what, const request& asked, const environment& env,
                   std::string_view pattern);
// Likewise, for all of them; one for each.
std::vector<response> answers_of(const batch_handler& what, std::span<const request* const> asked,
                                 const environment& env, std::string_view pattern);

}  // namespace settle::inline v0::http
