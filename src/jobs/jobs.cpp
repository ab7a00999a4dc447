#include "settle/jobs.hpp"

#include "settle/error.hpp"

namespace settle::inline v0 {
namespace {

std::string topic_of(const std::string& queue) { return "jobs." + queue; }

consumer_options consuming(const job_runner_options& options) {
  auto with = options.consuming;
  if (!with.name.empty() || !with.topics.empty())
    throw error(errc::invalid_argument,
                "job_runner_options.consuming: name and topics follow from the queue");
  with.name = topic_of(options.queue);
  with.topics = {with.name};
  return with;
}

job job_of(const message& m, const std::string& queue) {
  return {m.type, m.payload, queue, m.key, m.content_type, m.id};
}

}  // namespace

event_id stage_job(transaction& tx, const job& what, const job_options& options) {
  if (what.queue.empty())
    throw error(errc::invalid_name, "a job's queue must not be empty; the usual one is default");
  return publish(tx,
                 event{.topic = topic_of(what.queue),
                       .type = what.name,
                       .key = what.key,
                       .payload = what.payload,
                       .content_type = what.content_type},
                 {.id = options.id, .deliver_at = options.run_at});
}

job_runner::job_runner(database& db, broker& from, const job_runner_options& options)
    : topic_(topic_of(options.queue)), consumer_(db, from, consuming(options)) {
  consumer_.on(topic_, "", [queue = options.queue](const message& m, transaction&) {
    throw handler_failed(failure_class::transient, "job " + m.id + " waits: this runner of " + queue +
                                                       " has no handler for '" + m.type + "'");
  });
}

job_runner::~job_runner() = default;

job_runner& job_runner::on(std::string_view name, handler what) {
  if (name.empty()) throw error(errc::invalid_name, "a job's name must not be empty");
  if (!what)
    throw error(errc::invalid_argument,
                "the handler of job '" + std::string(name) + "' is an empty function");
  const auto queue = topic_.substr(topic_of("").size());
  consumer_.on(topic_, name, [queue, what = std::move(what)](const message& m, transaction& tx) {
    what(job_of(m, queue), tx);
  });
  return *this;
}

bool job_runner::run_once(std::stop_token cancel) { return consumer_.run_once(std::move(cancel)); }

}  // namespace settle::inline v0
