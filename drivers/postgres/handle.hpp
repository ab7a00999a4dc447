// Thin ownership of libpq's handles, and what the files of this driver share.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <stop_token>

namespace settle::inline v0::postgres {

struct free_handle {
  void operator()(PGconn* conn) const noexcept { PQfinish(conn); }
  void operator()(PGresult* result) const noexcept { PQclear(result); }
  void operator()(PGcancel* cancel) const noexcept { PQfreeCancel(cancel); }
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};
using handle = std::unique_ptr<PGconn, free_handle>;
using result_handle = std::unique_ptr<PGresult, free_handle>;
using cancel_handle = std::unique_ptr<PGcancel, free_handle>;
using option_list = std::unique_ptr<PQconninfoOption, free_handle>;

using steady = std::chrono::steady_clock;

// How long somebody waits for the server, and what ends the wait early.
struct limit {
  steady::time_point until = steady::time_point::max();
  std::stop_token stop = {};
};

inline bool failed(const PGresult* answer) {
  const auto status = PQresultStatus(answer);
  return status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE;
}

inline bool is_copy(const PGresult* answer) {
  const auto status = PQresultStatus(answer);
  return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

}  // namespace settle::inline v0::postgres
