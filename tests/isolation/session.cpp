#include "isolation/session.hpp"

#include <libpq-fe.h>

#include <stdexcept>
#include <utility>

namespace settle::isolation {

session::session(std::string name, const std::string& conninfo)
    : name_(std::move(name)),
      conn_(PQconnectdb((conninfo + " application_name=" + name_).c_str()), PQfinish),
      thread_([this](const std::stop_token& stop) { work(stop); }) {
  if (PQstatus(conn_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(conn_.get()));
  PQsetNoticeProcessor(conn_.get(), [](void*, const char*) {}, nullptr);
}

session::~session() { resume_for_good(); }

session& session::sql(const std::string& statements) {
  return call(statements, [this, statements] { execute(statements); });
}

session& session::call(std::string what, std::function<void()> action) {
  steps_.push_back({std::move(what), std::move(action)});
  return *this;
}

session& session::called(std::string what) {
  steps_.back().what = std::move(what);
  return *this;
}

session& session::may_fail() {
  steps_.back().may_fail = true;
  return *this;
}

void session::execute(const std::string& statements) {
  const std::unique_ptr<PGresult, void (*)(PGresult*)> done(PQexec(conn_.get(), statements.c_str()), PQclear);
  const auto status = PQresultStatus(done.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    throw std::runtime_error(PQerrorMessage(conn_.get()));
}

void session::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return task_ != nullptr; })) {
    const auto task = std::exchange(task_, nullptr);
    lock.unlock();
    std::string failed;
    try {
      task();
    } catch (const std::exception& e) {
      failed = e.what();
    }
    lock.lock();
    error_ = failed;
    state_ = state::idle;
    changed_.notify_all();
  }
}

void session::pause() {
  std::unique_lock lock(mutex_);
  if (!pausing_) return;
  state_ = state::paused;
  changed_.notify_all();
  changed_.wait(lock, [&] { return state_ == state::running; });
}

void session::start(const std::function<void()>& action) {
  const std::scoped_lock lock(mutex_);
  if (state_ == state::idle) task_ = action;
  state_ = state::running;
  changed_.notify_all();
}

bool session::stands_within(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, wait, [&] { return state_ != state::running; });
}

bool session::running() {
  const std::scoped_lock lock(mutex_);
  return state_ == state::running;
}

void session::resume_for_good() {
  const std::scoped_lock lock(mutex_);
  pausing_ = false;
  if (state_ == state::paused) state_ = state::running;
  changed_.notify_all();
}

void session::pause_again() {
  const std::scoped_lock lock(mutex_);
  pausing_ = true;
}

bool session::in_transaction() const { return PQtransactionStatus(conn_.get()) != PQTRANS_IDLE; }

std::string session::take_error() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(error_, {});
}

}  // namespace settle::isolation
