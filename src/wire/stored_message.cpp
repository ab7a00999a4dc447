#include "wire/stored_message.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "wire/attribute_names.hpp"

namespace settle::inline v0 {

// What a foreign broker has delivered need not be text that a database takes.
void append_message(parameters& to, const message& m) {
  const auto add = [&](std::string_view text) { to.emplace_back(storable_text(text, 3 * text.size())); };
  add(m.id);
  add(m.source);
  add(m.type);
  add(m.subject);
  add(m.content_type);
  to.emplace_back(m.time);
  add(to_json(m.extensions));
  to.emplace_back(blob{m.payload});
}

message read_message(result& rows, std::size_t row, std::size_t first) {
  message m;
  m.id = rows.take(row, first).take_text();
  m.source = rows.take(row, first + 1).take_text();
  m.type = rows.take(row, first + 2).take_text();
  m.subject = rows.take(row, first + 3).take_text();
  m.content_type = rows.take(row, first + 4).take_text();
  m.time = rows[row][first + 5].time();
  m.extensions = attributes_from_json(rows[row][first + 6].text());
  rename_old_attributes(m.extensions);
  m.payload = rows.take(row, first + 7).take_bytes();
  return m;
}

}  // namespace settle::inline v0
