/* client.h - ask the running relay, by its control socket.
 *
 * THREAD     Main; it blocks.
 * ERRORS     Told on stderr. Out of reach: STATUS_UNREACHABLE. An answer that breaks off, because
 *            the relay was stopped or killed: STATUS_UNREACHABLE too.
 */
#ifndef CMD_OPERATOR_CLIENT_H
#define CMD_OPERATOR_CLIENT_H

#include "base/conf.h"

#include <stdbool.h>

/* Bits: nothing a peer said is left as it was in the answer, and its colours reach the terminal; wait until
 * the relay has closed the connection; that it has ended without an answer is what was ordered. */
enum client_how { CLIENT_CLEAN = 1, CLIENT_UNTIL_CLOSED = 2, CLIENT_UNTIL_ENDED = 4 };

int client_ask(const char *spool, int argc, char **argv, unsigned how);
/* Send the words, copy the answer to stdout and stderr, return its status. */

int client_order(const struct conf *, int argc, char **argv, unsigned how);
/* The same, of the relay that has this file: where none answers, it may have been started with another spool, which is said. */

int client_run(const char *conf_file, int argc, char **argv, unsigned how);
/* The same, of the relay of that configuration; NULL: of the one that is found by default. */

int client_ask_queue(struct conf *, int argc, char **argv, unsigned how);
/* The same for orders that can be carried out without a relay (offline.h). */

int client_ask_queue_into(struct conf *, int argc, char **argv, struct buf *to);
/* The same, but what is for standard output is appended to the buffer, and what is for standard error
 * is dropped. */

bool client_try_into(const char *spool, char *word, struct buf *to);
/* As client_ask_into() with one word, but nothing is told where no relay runs, or it has something to complain of; and one
 * that does not answer is waited for some seconds only, and then told. */

int client_ask_into(const char *spool, int argc, char **argv, struct buf *to);
/* The same, but what is for standard output is appended to the buffer. */

bool client_wait(const char *spool, int most_ms);
/* Until a relay answers there. False: none did in that time. */

#endif
