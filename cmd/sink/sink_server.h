/* sink_server.h - `sluice sink`: a socket, its sessions, what was counted.
 *
 *	client --> [ server ] --> [ session ] --> [ command: a verb a function ] --> [ store ]
 *
 * OWNERSHIP  The server owns its sessions.
 * THREAD     Main, in a loop of its own.
 * ERRORS     A socket that can't be had, a folder that can't be written: told on stderr, and false.
 */
#ifndef CMD_SINK_SINK_SERVER_H
#define CMD_SINK_SINK_SERVER_H

#include "base/list.h"
#include "base/loop.h"
#include "cmd/sink/sink_mood.h"
#include "cmd/sink/sink_options.h"

#include <openssl/types.h>

struct sink {
	const struct sink_options *options;
	struct loop *loop;
	int fd, folder; /* folder -1: nothing is stored */
	SSL_CTX *tls;	/* NULL: none is offered */
	struct sink_mood mood;
	ev_io acceptor;
	ev_signal term, interrupt;
	ev_prepare writer;
	struct list sessions;
	struct timer ending, pause;
	bool starved;	    /* that there are too few descriptors was said */
	int64_t open, most; /* connections that are served */
	int64_t connections, turned_away, messages, recipients, bytes, refused;
	uint64_t next_file;
};

bool sink_open(struct sink *, const struct sink_options *);
void sink_run(struct sink *);
void sink_close(struct sink *);

void sink_counted(struct sink *);
/* A message was taken: perhaps it was the last. */

#endif
