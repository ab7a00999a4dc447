// A declared mapping (settle/message_mapping.hpp), read once and applied to each message. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settle/broker.hpp"
#include "settle/message_mapping.hpp"

namespace settle::inline v0 {

using named_texts = std::vector<std::pair<std::string, std::string>>;

// What a message has besides its payload and what it says as a CloudEvent.
struct foreign_parts {
  const named_texts& properties;
  const named_texts& headers;
};

class mapper {
 public:
  mapper() = default;
  // Throws invalid_argument for a template that cannot be read.
  explicit mapper(const message_mapping& of);

  // Fills in what the message does not have.
  void fill(message& to, const foreign_parts& from) const;

 private:
  enum class kind { text, property, header, payload };
  struct part {
    kind from = kind::text;
    std::string name;
  };
  using text_template = std::vector<part>;
  using alternatives = std::vector<text_template>;
  class reader;

  static alternatives read(const char* attribute, const std::vector<std::string>& given);
  static text_template read(const char* attribute, std::string_view given);

  alternatives id_, source_, type_, key_, subject_, time_;
};

}  // namespace settle::inline v0
