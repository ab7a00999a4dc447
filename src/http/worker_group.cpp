#include "http/workers.hpp"
#include "settle/error.hpp"
#include "settle/http.hpp"

namespace settle::inline v0::http {
namespace {

const worker_group_options& checked(const worker_group_options& given) {
  if (given.threads < 1 || given.threads > 1024)
    throw error(errc::invalid_argument, "worker_group_options.threads must be 1 to 1,024");
  if (given.queue_max < 1)
    throw error(errc::invalid_argument, "worker_group_options.queue_max must be at least 1");
  return given;
}

}  // namespace

worker_group::worker_group(const worker_group_options& options)
    : workers_(std::make_unique<workers>(checked(options))) {}
worker_group::~worker_group() = default;
std::size_t worker_group::threads_started() const { return workers_->threads_started(); }
std::size_t worker_group::waiting() const { return workers_->waiting(); }

}  // namespace settle::inline v0::http
