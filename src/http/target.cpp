#include "http/characters.hpp"
#include "http/routes.hpp"

namespace settle::inline v0::http {

refusal split_target(request& asked) {
  std::string_view rest = asked.target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!same_name(rest.substr(0, scheme.size()), scheme)) continue;
    const auto slash = rest.find_first_of("/?", scheme.size());
    const auto authority = rest.substr(scheme.size(), slash - scheme.size());
    if (authority.empty() || !is_authority(authority))
      return {400, "target_invalid", "the request target does not name a host"};
    rest = slash == std::string_view::npos ? std::string_view("/") : rest.substr(slash);
  }
  if (!rest.starts_with('/')) return {400, "target_invalid", "the request target is not a path"};
  if (rest.find('#') != std::string_view::npos)
    return {400, "target_invalid", "the request target has a fragment"};
  const auto mark = rest.find('?');
  asked.path.assign(rest.substr(0, mark));
  asked.query.assign(mark == std::string_view::npos ? std::string_view() : rest.substr(mark + 1));
  return {};
}

std::string_view request::parameter(std::string_view name) const {
  for (const auto& one : path_parameters)
    if (one.name == name) return one.value;
  return {};
}

std::optional<std::string> request::query_parameter(std::string_view name) const {
  for (std::string_view rest = query; !rest.empty();) {
    const auto end = rest.find('&');
    const auto pair = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const auto equals = pair.find('=');
    if (percent_decoded(pair.substr(0, equals), true) != name) continue;
    return equals == std::string_view::npos ? std::string() : percent_decoded(pair.substr(equals + 1), true);
  }
  return std::nullopt;
}

}  // namespace settle::inline v0::http
