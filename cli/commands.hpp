// The subcommands. Each adds itself and its options to the command line.
#pragma once

namespace CLI {
class App;
}

namespace settle::cli {

struct context;

void add_backup(CLI::App& to, context& shared);
void add_dlq(CLI::App& to, context& shared);
void add_dlq_discard(CLI::App& to, context& shared);  // below dlq
void add_dlq_replay(CLI::App& to, context& shared);   // below dlq
void add_doctor(CLI::App& to, context& shared);
void add_group(CLI::App& to, context& shared);
void add_help(CLI::App& to, context& shared);
void add_keys(CLI::App& to, context& shared);
void add_lock(CLI::App& to, context& shared);
void add_migrate(CLI::App& to, context& shared);
void add_outbox(CLI::App& to, context& shared);
void add_publish(CLI::App& to, context& shared);
void add_relay(CLI::App& to, context& shared);
void add_restore(CLI::App& to, context& shared);
void add_serve(CLI::App& to, context& shared);
void add_status(CLI::App& to, context& shared);
void add_tail(CLI::App& to, context& shared);
void add_verify(CLI::App& to, context& shared);
void add_webhook(CLI::App& to, context& shared);

}  // namespace settle::cli
