/* submit_talk.h - commands and replies on one blocking connection.
 *
 * OWNERSHIP  Embedded; talk_close() closes the connection.
 * THREAD     Main.
 * ERRORS     A connection that breaks off or is silent: code 0, and why in reply.
 * SEE        RFC 5321 4.2.
 */
#ifndef CMD_MAILDROP_SUBMIT_TALK_H
#define CMD_MAILDROP_SUBMIT_TALK_H

#include "base/address.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdio.h>

struct talk {
	int fd;
	FILE *from;
	int code;	  /* of the latest reply; 0: there was none */
	struct buf reply; /* its lines, with LF */
	bool shown;	  /* commands and replies go to stderr */
};

bool talk_open(struct talk *, const char *address);
/* address is "192.0.2.1:25" or "[2001:db8::1]:25"; the wildcard address means loopback. Does not
 * read the greeting. False: why is in reply; talk_close() is due all the same. */

bool talk_open_within(struct talk *, const char *address, const union address *from, int seconds);
/* The same, from an address of ours, or where the system chooses from NULL; each connect, read and write has so long. */

void talk_close(struct talk *);
int talk_read(struct talk *);
int talk_say(struct talk *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A command, without CRLF; returns the code of its reply. */

int talk_say_chunk(struct talk *, const char *data, size_t len);
/* BDAT, the only and last chunk. */

bool talk_send(struct talk *, const char *data, size_t len);
bool talk_offers(const struct talk *, const char *keyword);
/* Is it among the lines of the latest reply, which was that to EHLO? */

#endif
