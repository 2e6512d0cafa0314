// SQLite, for the data kept on disk.
#ifndef RONDO_CSQLITE_SHIM_H
#define RONDO_CSQLITE_SHIM_H

#include <sqlite3.h>

// RETURNING needs 3.35, of March 2021.
#if SQLITE_VERSION_NUMBER < 3035000
#error "Rondo needs SQLite 3.35 or later"
#endif

#pragma clang assume_nonnull begin

// SQLITE_TRANSIENT is a macro that casts -1 to a function pointer: SQLite copies the text before the call
// returns.
static inline int rondo_sqlite3_bind_text(sqlite3_stmt *statement, int index, const char *text, int count) {
    return sqlite3_bind_text(statement, index, text, count, SQLITE_TRANSIENT);
}

// Sets that closing a connection leaves the journal as it is. Swift cannot call sqlite3_db_config, which
// takes a variable number of arguments.
static inline int rondo_sqlite3_keep_journal(sqlite3 *connection) {
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *_Nullable)0);
}

#pragma clang assume_nonnull end

#endif
