#include "settle/http.hpp"

namespace settle::inline v0::http {

header_list::header_list(std::initializer_list<field> fields) {
  for (const auto& one : fields) add(one.name, one.value);
}

void header_list::add(std::string_view name, std::string_view value) {
  places_.push_back({static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(name.size()),
                     static_cast<std::uint32_t>(value.size())});
  text_.append(name).append(value);
}

void header_list::set(std::string_view name, std::string_view value) {
  remove(name);
  add(name, value);
}

// The text stays behind until the list goes; nobody removes so many that it would matter.
void header_list::remove(std::string_view name) {
  std::erase_if(places_, [&](const place& one) {
    return same_name(std::string_view(text_).substr(one.at, one.name_bytes), name);
  });
}

void header_list::clear() {
  text_.clear();
  places_.clear();
}

field header_list::operator[](std::size_t index) const {
  const auto& [at, name_bytes, value_bytes] = places_[index];
  const std::string_view text(text_);
  return {text.substr(at, name_bytes), text.substr(at + name_bytes, value_bytes)};
}

std::optional<std::string_view> header_list::find(std::string_view name) const {
  for (const auto& one : places_)
    if (one.name_bytes == name.size() &&
        same_name(std::string_view(text_).substr(one.at, one.name_bytes), name))
      return std::string_view(text_).substr(one.at + one.name_bytes, one.value_bytes);
  return std::nullopt;
}

std::vector<std::string_view> header_list::all(std::string_view name) const {
  std::vector<std::string_view> found;
  for (const auto one : *this)
    if (same_name(one.name, name)) found.push_back(one.value);
  return found;
}

std::size_t header_list::count(std::string_view name) const { return all(name).size(); }

}  // namespace settle::inline v0::http
