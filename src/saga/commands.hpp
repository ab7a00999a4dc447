// Commands: their rows in the journal, the waits for their replies, and what replies mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "saga/instance.hpp"

namespace settle::sagas {

// Replies of all types wait in the mailbox under this one, by the id of their command.
inline constexpr std::string_view reply_mail = "settle.reply";

// What is kept of a reply: its type and its payload.
std::string reply_text(std::string_view type, std::string_view payload);

// Whether row n is a command that is answered, which is not the same as a call.
bool is_command(const instance& of, const journal_row& row);
// Whether its reply is waited for: nobody knows how it ended. While everything is undone, only those whose
// time has not passed yet.
bool awaits_reply(const instance& of, const journal_row& row);
bool awaits_replies(const instance& of);
// Until when. A retry gives it all its time again.
timestamp reply_deadline(const instance& of, const journal_row& row);

// Notes in the journal what has answered the command of row n.
void note_reply(instance& of, int n, std::string_view reply);

}  // namespace settle::sagas
