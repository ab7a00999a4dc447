#include "postgres/session.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/if_possible.hpp"
#include "postgres/sqlstate.hpp"
#include "settle/error.hpp"

namespace settle::inline v0::postgres {
namespace {

handle start(const settings& to) {
  std::vector<const char*> keywords, texts;
  for (const auto& [keyword, text] : to.keywords) {
    keywords.push_back(keyword.c_str());
    texts.push_back(text.c_str());
  }
  keywords.push_back(nullptr);
  texts.push_back(nullptr);
  handle conn(PQconnectStartParams(keywords.data(), texts.data(), 0));
  if (!conn) throw std::bad_alloc();
  PQsetErrorVerbosity(conn.get(), PQERRORS_VERBOSE);  // the only way to the SQLSTATE of a refused connection
  return conn;
}

[[noreturn]] void refuse(PGconn* conn, const settings& to) {
  throw read_connect_failure(PQerrorMessage(conn)).as_error("connecting", to.name);
}

// Called by libpq, through which nothing may be thrown.
void note(void* log, const PGresult* notice) {
  const auto* text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
  const auto* state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
  if_possible([&] {
    static_cast<log_sink*>(log)->write(
        log_level::debug, "postgres_notice",
        {{"text", text != nullptr ? text : ""}, {"sqlstate", state != nullptr ? state : ""}});
  });
}

// Requests that hang on a dead line are left to themselves, but never more of them than this.
constexpr int cancels_max = 16;
std::atomic<int> cancels_under_way = 0;

}  // namespace

handle connect(const settings& to, const limit& within, poller& wait, const environment& env) {
  auto conn = start(to);
  if (PQstatus(conn.get()) == CONNECTION_BAD) refuse(conn.get(), to);
  auto state = PGRES_POLLING_WRITING;
  while (state != PGRES_POLLING_OK) {
    const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    switch (wait.wait(PQsocket(conn.get()), events, within)) {
      case waited::stopped:
        throw error(errc::cancelled, "stopped while connecting to " + to.name);
      case waited::timed_out:
        throw error(errc::store_unavailable,
                    fmt::format("connecting to {} took longer than connect_timeout", to.name));
      case waited::ready:
        break;
    }
    state = PQconnectPoll(conn.get());
    if (state == PGRES_POLLING_FAILED) refuse(conn.get(), to);
  }
  PQsetErrorVerbosity(conn.get(), PQERRORS_DEFAULT);
  PQsetNoticeReceiver(conn.get(), note, env.log);
  if (PQsetnonblocking(conn.get(), 1) != 0 || PQenterPipelineMode(conn.get()) != 1) refuse(conn.get(), to);
  return conn;
}

bool request_cancel(PGconn* conn, duration at_most) noexcept {
  struct request {
    cancel_handle of;
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    bool delivered = false;
  };
  if (++cancels_under_way > cancels_max) {
    --cancels_under_way;
    return false;
  }
  try {
    auto shared = std::make_shared<request>();
    shared->of.reset(PQgetCancel(conn));
    std::thread([shared] {
      char why[256];
      const bool delivered = shared->of && PQcancel(shared->of.get(), why, sizeof why) == 1;
      const std::scoped_lock lock(shared->mutex);
      shared->over = true;
      shared->delivered = delivered;
      shared->changed.notify_all();
      --cancels_under_way;
    }).detach();
    std::unique_lock lock(shared->mutex);
    shared->changed.wait_for(lock, at_most, [&] { return shared->over; });
    return shared->delivered;
  } catch (...) {  // no thread, no memory: the connection will be closed without the request
    --cancels_under_way;
    return false;
  }
}

void close_now(handle& conn) noexcept {
  if (!conn) return;
  // PQfinish would still flush its buffer.
  if (const int socket = PQsocket(conn.get()); socket >= 0) ::shutdown(socket, SHUT_RDWR);
  conn.reset();
}

}  // namespace settle::inline v0::postgres
