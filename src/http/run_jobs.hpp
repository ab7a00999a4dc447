// Asks the handlers of jobs. By a worker.
#pragma once

#include "http/job.hpp"

namespace settle::inline v0::http {

// Jobs of one route that is not batched, one of them, or of one batch. Each is answered afterwards, unless
// nobody waits for it any more.
void run_jobs(const job_chain& all) noexcept;

}  // namespace settle::inline v0::http
