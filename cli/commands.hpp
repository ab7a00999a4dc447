// The subcommands. Each adds itself and its options to the command line.
#pragma once

#include "cli/syntax.hpp"

namespace settle::cli {

struct context;

void add_backup(command_syntax to, context& shared);
void add_dlq(command_syntax to, context& shared);
void add_dlq_discard(command_syntax to, context& shared);  // below dlq
void add_dlq_import(command_syntax to, context& shared);   // below dlq
void add_dlq_replay(command_syntax to, context& shared);   // below dlq
void add_doctor(command_syntax to, context& shared);
void add_group(command_syntax to, context& shared);
void add_group_create(command_syntax to, context& shared);  // below group
void add_help(command_syntax to, context& shared);
void add_keys(command_syntax to, context& shared);
void add_lock(command_syntax to, context& shared);
void add_migrate(command_syntax to, context& shared);
void add_outbox(command_syntax to, context& shared);
void add_publish(command_syntax to, context& shared);
void add_relay(command_syntax to, context& shared);
void add_restore(command_syntax to, context& shared);
void add_saga(command_syntax to, context& shared);
void add_saga_orders(command_syntax to, context& shared);  // below saga
void add_saga_signal(command_syntax to, context& shared);  // below saga
void add_serve(command_syntax to, context& shared);
void add_status(command_syntax to, context& shared);
void add_tail(command_syntax to, context& shared);
void add_verify(command_syntax to, context& shared);
void add_webhook(command_syntax to, context& shared);

}  // namespace settle::cli
