/* control.h - the control socket on the relay's side: a request is words, its answer is text.
 *
 *	client --> [ connection: words ] -- handle(request) --> requests.c, queue_job.c
 *	   ^                                                          |
 *	   +------ frames <---- control_say(), control_finish() <-----+
 *
 * STATES     A connection reads words, then is being answered, then is closed.
 * OWNERSHIP  The request belongs to its connection. When the connection is lost, gone() is called
 *            if it is set, and the request is no longer valid.
 * THREAD     Main; in its loop.
 * ERRORS     A socket that can't be made: NULL, and why in error. A client that is too slow, sends
 *            too much, or goes away, loses its connection.
 */
#ifndef CMD_CONTROL_CONTROL_H
#define CMD_CONTROL_CONTROL_H

#include "base/loop.h"
#include "base/buf.h"

#include <stdbool.h>

enum {
	CONTROL_CONNECTIONS_MAX = 100,
	CONTROL_OUT_HIGH = 256 << 10, /* bytes unsent: the answer has to wait */
};

struct request {
	int argc;
	char **argv;			  /* ends with NULL */
	bool progress;			  /* the client wants control_progress() */
	void *job;			  /* the handler's own */
	void (*resume)(struct request *); /* what was unsent has gone; may be NULL */
	void (*gone)(struct request *);
};

struct control;

struct control *control_new(struct loop *, const char *folder,
			    void (*handle)(void *owner, struct request *), void *owner,
			    struct buf *error);
/* Listen at folder/control; the folder must not be served by another relay. */

struct control *control_new_at(struct loop *, int fd, void (*handle)(void *owner, struct request *),
			       void (*ended)(void *owner), void *owner);
/* The same for one connection that is there, which does not block; ended() when it is no more. */

bool control_renew(struct control *);
/* Where somebody has removed the socket, there is one again. False: there can't be, and errno says why. */

void control_close(struct control *);
/* Nobody connects any more, and the name of the socket is free. Who is connected stays. */

void control_drop(struct control *);
/* Requests under way are dropped, while what answers them is there. Who has an answer and waits for the end stays. */

void control_free(struct control **);
/* The rest as well; the socket is removed. */

void control_lend(struct request *, struct request **to);
/* To a job that answers later: *to is the request, and NULL once the client has gone. */

void control_say(struct request *, const char *text, size_t len);
void control_complain(struct request *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* For the client's standard output; standard error. */

void control_progress(struct request *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* How far it has come, on a line of the terminal that the next one takes the place of. Nothing, for
 * a client that has not asked for it. */

bool control_full(struct request *);
/* Much is unsent: resume() will be called when it has gone. */

void control_finish(struct request *, int status);
/* The answer is complete; the request is no longer valid. */

void control_finish_last(struct request *, int status);
/* The same, but the connection stays until control_free(). */

#endif
