// Why a request is answered without its handler.
#pragma once

#include <string_view>

namespace settle::inline v0::http {

struct refusal {
  int status = 0;                // 0: it is not refused
  std::string_view code = {};    // also the reason in the metrics
  std::string_view detail = {};  // never text of the client's
  explicit operator bool() const { return status != 0; }
};

}  // namespace settle::inline v0::http
