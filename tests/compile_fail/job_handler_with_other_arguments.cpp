// Expected: std::function<void(const settle::v0::job&, settle::v0::transaction&)>
#include "settle/jobs.hpp"

void wrong(settle::job_runner& runner) {
  runner.on("resize", [](const settle::message&, settle::transaction&) {});  // here
}
