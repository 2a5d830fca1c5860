/* order.h - what an operator wants of a destination, a flow or a login: to see it, or to change it.
 *
 * The words are those of the commands, and of the orders that nodes give each other.
 *
 * THREAD     Any. Pure.
 */
#ifndef BASE_ORDER_H
#define BASE_ORDER_H

#include <stdbool.h>
#include <stddef.h>

/* X(order, its word, what is said when it is done) */
#define ORDERS(X)                                                                                  \
	X(LIST, "list", "")                                                                        \
	X(SHOW, "show", "")                                                                        \
	X(SUSPEND, "suspend", "suspended")                                                         \
	X(RESUME, "resume", "resumed")                                                             \
	X(RESET, "reset", "reset")

enum order {
#define X(order, word, done) ORDER_##order,
	ORDERS(X)
#undef X
};

bool order_changes(enum order); /* neither list nor show */
const char *order_word(enum order);
const char *order_done(enum order);

bool order_find(const char *word, size_t len, enum order *);
/* False: it is none of their words. */

#endif
