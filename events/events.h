/* events.h - the front page of events/: the result of each attempt, for a file, a socket or an HTTP server.
 *
 *	qmgr -- EVENT_LINE --> [ events: lines, gathered for events.delay ] -- receiver_give() --> receiver
 *	                        ^                                                |
 *	                        +---- AWAY: again after 1 s, 2 s, ... -----------+
 *
 *	events.c		this thread: what waits, when it is given, what is said of it
 *	receiver.c		the receiver: which of the three
 *	receiver_bounds.c	how much of what waits they take, and for how long
 *	receiver_file.c		a file, which others may move away
 *	receiver_socket.c	a Unix socket
 *	receiver_http.c		an HTTP server, by libcurl
 *
 * The thread does nothing else, so it may wait for a disk, a peer or a server. Mail never waits
 * for it: base/event_line.h bounds the events that wait. Each event is delivered at
 * least once, and twice if a receiver took it and failed before it said so. What is left at the
 * stop is kept in the folder of the queue (cmd/watch/kept_file.h), and given at the next start.
 *
 * OWNERSHIP  Owns what it was sent until a receiver has it.
 * THREAD     events_new() to events_free(): main. All else: the thread "events".
 * ERRORS     Logged once until it works again, and counted.
 */
#ifndef EVENTS_EVENTS_H
#define EVENTS_EVENTS_H

#include "base/conf.h"
#include "base/loop.h"

struct events;

struct events *events_new(struct conf *); /* takes a reference */
void events_start(struct events *);
void events_reload(struct events *, struct conf *); /* posts; takes a reference */
struct loop *events_loop(struct events *);
/* Takes EVENT_LINE. */

void events_stop(struct events *);
/* After the last was posted: ends the thread, and gives what waits to the receiver, within a second. */

void events_recall(struct events *, const char *text);
/* The lines that were kept. Before events_start(). */

const char *events_left(struct events *);
/* The lines that nobody has taken, to be kept. After events_stop(). */

void events_free(struct events **);

#endif
