/* descriptors.h - how many file descriptors each kind of connection may have.
 *
 *	limit  = reserve (threads, names, log, what a file needs for a moment)
 *	       + files (segments, large contents: counted, and new ones refused last)
 *	       + clients + hosts + control + HTTP
 *
 * Clients and hosts share the descriptors, and neither can have more than three quarters of them, so that
 * mail goes out while clients use all of theirs, and comes in while hosts do. A reserve is kept
 * back: some of it for hosts, whose deliveries free the descriptors of others, and the last for operators.
 *
 * Whoever is refused a descriptor waits, or replies "later". The system's own limit must not be reached:
 * there accept(2) fails, and the listening socket stays readable.
 *
 * THREAD     descriptors_limit(): main. The rest: any; numbers are atomic, and may be exceeded by what
 *            the threads are just taking.
 * ERRORS     False: none for this use now.
 */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* U(name, eighths of all that one use may have, sixteenths of all that it leaves to others) */
#define DESCRIPTOR_USES(U)                                                                         \
	U(CLIENTS, 6, 3)                                                                           \
	U(HOSTS, 6, 1)                                                                             \
	U(FILES, 8, 2)                                                                             \
	U(HTTP, 4, 1)                                                                              \
	U(CONTROL, 8, 0)

enum descriptor_use {
#define U(name, ...) DESCRIPTORS_##name,
	DESCRIPTOR_USES(U)
#undef U
		DESCRIPTOR_USES_N
};

enum {
	DESCRIPTORS_RESERVE = 32,  /* beside what is open when the limit is first set */
	DESCRIPTORS_LEAST = 32,	   /* to share, whatever the limit says */
	DESCRIPTORS_PAUSE_MS = 250 /* until who was refused asks again */
};

int64_t descriptors_of_system(void); /* that this process may have open; 0: any number */

void descriptors_limit(int64_t limit);
/* Share out so many, or as many as the system gives where limit is 0 or more than that. First called
 * when all that stays open is open. Without a call nothing is refused. */

bool descriptors_take(enum descriptor_use);
bool descriptors_room(enum descriptor_use);  /* would it be given? */
void descriptors_count(enum descriptor_use); /* it is there, whether there was room or not */
void descriptors_give(enum descriptor_use);

#endif
