// As much of SQL's lexical rules as it takes to see what a statement does to the transaction, and where it
// ends. The server decides everything else.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sql/savepoints.hpp"

namespace settle::inline v0::postgres {

// Whether any of the following can be true of it. Nearly no statement begins with such a word, and to look
// at one word is cheap.
bool concerns_transaction(std::string_view sql);

// BEGIN, START TRANSACTION, COMMIT, END, ABORT, ROLLBACK and PREPARE TRANSACTION. Savepoints are the
// caller's own business, so ROLLBACK TO is none of them.
bool controls_transaction(std::string_view sql);

// ROLLBACK TO: the only statement that means something in a transaction that has failed.
bool returns_to_savepoint(std::string_view sql);

// What a statement does to a savepoint; none for all others.
std::optional<sql::savepoint_step> savepoint_step_of(std::string_view sql);

// SET TRANSACTION, and the settings behind it. Once a transaction has begun, all that it can do is to forbid
// the writes of those who come later.
bool sets_transaction(std::string_view sql);

// EXECUTE, PREPARE and DEALLOCATE: about prepared statements of the caller's, not of this driver.
bool names_prepared_statement(std::string_view sql);

// The statements of a script, without empty ones.
std::vector<std::string_view> split_script(std::string_view sql);

}  // namespace settle::inline v0::postgres
