/* events.h - the front page of events/: what became of mail, told to a file, a socket or an HTTP server.
 *
 *	qmgr -- EVENT_LINE --> [ events: lines, gathered for events.delay ] -- receiver_give() --> receiver
 *	                        ^                                                |
 *	                        +---- AWAY: again after 1 s, 2 s, ... -----------+
 *
 *	events.c		this thread: what waits, when it is given, what is said of it
 *	receiver.c		who is told: which of the three, and what they share
 *	receiver_file.c		a file, which others may move away
 *	receiver_socket.c	a Unix socket
 *	receiver_http.c		an HTTP server, by libcurl
 *
 * The thread does nothing else, so a disk, a peer or a server may keep it waiting. Mail never waits
 * for it: base/event_line.h bounds what it has not handed over. Each event is handed over at
 * least once; twice where a receiver took it and did not live to say so. What nobody has taken at the
 * stop is kept in the folder of the queue (cmd/watch/kept_file.h), and given at the next start.
 *
 * OWNERSHIP  Owns what it was sent until a receiver has it.
 * THREAD     events_new() to events_free(): main. All else: its own.
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
/* What was kept. Before events_start(). */

const char *events_left(struct events *);
/* What nobody has taken, to be kept. After events_stop(). */

void events_free(struct events **);

#endif
