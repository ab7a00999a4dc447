#include <algorithm>

#include "http/batch_round.hpp"
#include "http/characters.hpp"
#include "http/routes.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::http {
namespace {

constexpr std::size_t segments_max = 64;

template <class Each>
void for_each_segment(std::string_view path, const Each& each) {
  do {
    path.remove_prefix(1);
    const auto end = std::min(path.find('/'), path.size());
    each(path.substr(0, end));
    path.remove_prefix(end);
  } while (!path.empty());
}

[[noreturn]] void refuse(std::string_view pattern, std::string_view why) {
  throw error(errc::invalid_argument, "the pattern '" + std::string(pattern) + "' " + std::string(why));
}

std::vector<segment> parsed(std::string_view pattern) {
  if (!pattern.starts_with('/')) refuse(pattern, "does not begin with '/'");
  std::vector<segment> segments;
  for_each_segment(pattern, [&](std::string_view text) {
    const bool is_parameter = text.size() > 2 && text.front() == '{' && text.back() == '}';
    if (is_parameter) text = text.substr(1, text.size() - 2);
    if (text.find_first_of("{}?#%") != std::string_view::npos)
      refuse(pattern, "has a segment that is neither literal nor {name}");
    const segment made{std::string(text), is_parameter};
    if (is_parameter && std::ranges::find(segments, made) != segments.end())
      refuse(pattern, "has two parameters of one name");
    segments.push_back(made);
  });
  if (segments.size() > segments_max) refuse(pattern, "has too many segments");
  return segments;
}

bool same_shape(const std::vector<segment>& a, const std::vector<segment>& b) {
  return std::ranges::equal(a, b, [](const segment& x, const segment& y) {
    return x.is_parameter == y.is_parameter && (x.is_parameter || x.text == y.text);
  });
}

// At the first segment in which they differ in kind, the literal one goes first.
bool goes_before(const std::unique_ptr<path_routes>& a, const std::unique_ptr<path_routes>& b) {
  return std::ranges::lexicographical_compare(a->segments, b->segments, {}, &segment::is_parameter,
                                              &segment::is_parameter);
}

std::string allowed_by(const path_routes& path) {
  std::vector<std::string> names;
  for (const auto& one : path.methods) names.push_back(one.method);
  if (std::ranges::find(names, "GET") != names.end() && std::ranges::find(names, "HEAD") == names.end())
    names.emplace_back("HEAD");
  std::ranges::sort(names);
  std::string text;
  for (const auto& one : names) text += (text.empty() ? "" : ", ") + one;
  return text;
}

const route* route_for(const path_routes& path, std::string_view method) {
  const auto find = [&](std::string_view name) {
    const auto found = std::ranges::find(path.methods, name, &route::method);
    return found == path.methods.end() ? nullptr : &*found;
  };
  const auto* exact = find(method);
  return exact == nullptr && method == "HEAD" ? find("GET") : exact;
}

bool fits(const path_routes& path, const std::vector<std::string>& segments) {
  return std::ranges::equal(path.segments, segments, [](const segment& expected, const std::string& given) {
    return expected.is_parameter ? !given.empty() : expected.text == given;
  });
}

}  // namespace

path_routes& router::table::path_of(std::string_view pattern) {
  auto segments = parsed(pattern);
  for (const auto& one : paths_) {
    if (one->pattern == pattern) return *one;
    if (same_shape(one->segments, segments))
      refuse(pattern, "means the same paths as '" + one->pattern + "' with other names");
  }
  auto made = std::make_unique<path_routes>();
  made->pattern = pattern;
  made->segments = std::move(segments);
  auto& path = *made;
  if (std::ranges::none_of(path.segments, &segment::is_parameter)) literal_.emplace(path.pattern, &path);
  paths_.insert(std::ranges::upper_bound(paths_, made, goes_before), std::move(made));
  return path;
}

route& router::table::add(std::string_view method, std::string_view pattern) {
  if (!is_token(method)) refuse(pattern, "has a method that is no token");
  auto& path = path_of(pattern);
  if (std::ranges::find(path.methods, method, &route::method) != path.methods.end())
    refuse(pattern, "has a route for this method already");
  auto& made = path.methods.emplace_back();
  made.method = method;
  path.allow = allowed_by(path);
  return made;
}

handler router::table::wrapped(handler what) const {
  for (auto outer = around_.rbegin(); outer != around_.rend(); ++outer) what = (*outer)(std::move(what));
  return what;
}

const path_routes* router::table::path_that_fits(request& asked,
                                                 const std::vector<std::string>& segments) const {
  for (const auto& path : paths_) {
    if (!fits(*path, segments)) continue;
    for (std::size_t n = 0; n < segments.size(); ++n)
      if (path->segments[n].is_parameter)
        asked.path_parameters.push_back({path->segments[n].text, segments[n]});
    return path.get();
  }
  return nullptr;
}

refusal router::table::find(request& asked, match& found) const {
  asked.path_parameters.clear();
  found = {};
  if (const auto known = literal_.find(std::string_view(asked.path)); known != literal_.end()) {
    found.path = known->second;
  } else {
    std::vector<std::string> segments;
    bool decodable = true;
    if (std::ranges::count(asked.path, '/') > static_cast<std::ptrdiff_t>(segments_max)) return {};
    for_each_segment(asked.path, [&](std::string_view raw) {
      auto text = percent_decoded(raw);
      // A handler may take a parameter for a file's name.
      decodable = decodable && text && *text != "." && *text != "..";
      if (decodable) segments.push_back(std::move(*text));
    });
    if (!decodable)
      return {400, "target_invalid", "the path has a broken escape, a NUL or a segment of dots"};
    found.path = path_that_fits(asked, segments);
  }
  if (found.path != nullptr) found.found = route_for(*found.path, asked.method);
  return {};
}

[[noreturn]] static void refuse_empty(std::string_view pattern) {
  throw error(errc::invalid_argument, "the handler for " + std::string(pattern) + " is an empty function");
}

router::router() : table_(std::make_unique<table>()) {}
router::~router() = default;
router::router(router&&) noexcept = default;
router& router::operator=(router&&) noexcept = default;

router& router::add(std::string_view method, std::string_view pattern, handler what,
                    const route_options& options) {
  if (!what) refuse_empty(pattern);
  if (options.quick && options.workers) refuse(pattern, "is for a group of workers and quick");
  auto& made = table_->add(method, pattern);
  made.what = table_->wrapped(std::move(what));
  made.options = options;
  return *this;
}

router& router::get(std::string_view pattern, handler what, const route_options& options) {
  return add("GET", pattern, std::move(what), options);
}
router& router::post(std::string_view pattern, handler what, const route_options& options) {
  return add("POST", pattern, std::move(what), options);
}
router& router::put(std::string_view pattern, handler what, const route_options& options) {
  return add("PUT", pattern, std::move(what), options);
}
router& router::patch(std::string_view pattern, handler what, const route_options& options) {
  return add("PATCH", pattern, std::move(what), options);
}
router& router::del(std::string_view pattern, handler what, const route_options& options) {
  return add("DELETE", pattern, std::move(what), options);
}

router& router::post_batched(std::initializer_list<std::string_view> patterns, batch_handler what,
                             const batch_options& options) {
  if (!what) refuse_empty(patterns.size() == 0 ? "no pattern" : *patterns.begin());
  if (options.batch_max == 0 || options.at_once_max == 0)
    throw error(errc::invalid_argument, "batch_options.batch_max and at_once_max must be at least 1");
  const auto together =
      std::make_shared<batch>(batch{std::move(what), options.batch_max, options.at_once_max});
  if (table_->has_middleware()) {
    together->size_max = std::min(options.batch_max, batch_options::behind_middleware_max);
    together->each = table_->wrapped(
        [of = together.get()](const request& asked) { return batch_round::answer(*of, asked); });
  }
  for (const auto pattern : patterns) {
    auto& made = table_->add("POST", pattern);
    made.together = together;
    made.options.body_bytes_max = options.body_bytes_max;
    made.options.workers = options.workers;
    made.what = [together](const request& asked) {
      return together->each ? together->each(asked) : batch_round::answer(*together, asked);
    };
  }
  return *this;
}

router& router::use(middleware what) {
  table_->use(std::move(what));
  return *this;
}

void router::table::number_paths(std::map<std::string, std::size_t, std::less<>>& known) {
  for (const auto& path : paths_)
    path->number = known.try_emplace(path->pattern, known.size() + 1).first->second;
}

std::vector<std::shared_ptr<worker_group>> router::table::groups() const {
  std::vector<std::shared_ptr<worker_group>> all;
  for (const auto& path : paths_)
    for (const auto& one : path->methods)
      if (one.options.workers && std::ranges::find(all, one.options.workers) == all.end())
        all.push_back(one.options.workers);
  return all;
}

response router::handle(request asked, const environment& env) const {
  if (asked.target.empty()) asked.target = asked.path;
  match found;
  auto refused = split_target(asked);
  if (!refused) refused = table_->find(asked, found);
  if (refused) return problem(refused.status, refused.code, refused.detail, asked.path);
  if (found.path == nullptr) return not_found(asked);
  if (found.found == nullptr) return not_allowed(asked, *found.path);
  asked.trace = read_trace(asked.headers);
  return answer_of(found.found->what, asked, env, *found.path);
}

}  // namespace settle::inline v0::http
