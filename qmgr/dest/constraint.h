/* constraint.h - the constraints that hold mail back, and the name of each.
 *
 *	reporting	its report to the sender is being stored
 *	cancelled	the operator wants it; what is under way must end first
 *	memory		recipients not read yet: no room in memory (pool.h)
 *	lookup		waits for its turn to ask for the next hop (router.h)
 *	dns		has asked, and waits for the answer
 *	sending		all of it is on a connection
 *	connecting	a connection is being opened for it
 *	suspended	the operator wants nothing delivered there
 *	dead		the site has failed too often
 *	out		no host of it is in service; one is tried again when its time comes
 *	rate		destination_rate: the next delivery is not due
 *	rate_delay	destination_rate_delay: one at a time, and a pause between
 *	window		as many connections as its window allows, all of them full
 *	share		its message has its share of connections (dispatch.h)
 *	silent		its hosts have never answered, and are being asked
 *	connection_limit    the transport has all its connections
 *	unready_limit   too many of them are not ready
 *	host_connection_limit   the hosts in service have all theirs
 *	host_pause	the hosts have as many as they were seen to take
 *	order		others come first
 *	idle		of a site: nothing waits
 *
 * THREAD     Any.
 */
#ifndef QMGR_DEST_CONSTRAINT_H
#define QMGR_DEST_CONSTRAINT_H

/* X(constraint, text) */
#define CONSTRAINTS(X)                                                                             \
	X(REPORTING, "reporting")                                                                  \
	X(CANCELLED, "cancelled")                                                                  \
	X(MEMORY, "memory")                                                                        \
	X(LOOKUP, "lookup")                                                                        \
	X(DNS, "dns")                                                                              \
	X(SENDING, "sending")                                                                      \
	X(CONNECTING, "connecting")                                                                \
	X(SUSPENDED, "suspended")                                                                  \
	X(DEAD, "dead")                                                                            \
	X(OUT, "out")                                                                              \
	X(RATE, "rate")                                                                            \
	X(RATE_DELAY, "rate_delay")                                                                \
	X(WINDOW, "window")                                                                        \
	X(SHARE, "share")                                                                          \
	X(SILENT, "silent")                                                                        \
	X(CONNECTION_LIMIT, "connection_limit")                                                    \
	X(UNREADY_LIMIT, "unready_limit")                                                          \
	X(HOST_CONNECTION_LIMIT, "host_connection_limit")                                          \
	X(HOST_PAUSE, "host_pause")                                                                \
	X(ORDER, "order")                                                                          \
	X(IDLE, "idle")

enum constraint {
#define X(constraint, text) CONSTRAINT_##constraint,
	CONSTRAINTS(X)
#undef X
		CONSTRAINT_COUNT
};

const char *constraint_name(enum constraint);

#endif
