// Answers as bytes. Pure.
#pragma once

#include <string>
#include <string_view>

#include "settle/http.hpp"

namespace settle::inline v0::http {

struct answer_form {
  bool close = false;
  bool keep_alive_said = false;  // to HTTP/1.0, which would close otherwise
  std::string_view date;
  const header_list* defaults = nullptr;  // for those that the answer does not have
};

bool may_have_body(int status);

// Everything up to the body.
void append_head(std::string& out, const response& answer, const answer_form& form);

}  // namespace settle::inline v0::http
