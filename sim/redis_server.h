/* redis_server.h - Redis in a simulation: bytes of commands in, replies out, each in its turn.
 *
 *	cluster/wire --> [ commands ] -- redis_keys: what they do --> reply, later
 *	                     |
 *	                     +-- one after the other: what each costs, as the scenario says
 *
 * A command arrives after half a round trip, is carried out when those before it are, and answered after
 * another half. What is published reaches all who have subscribed when it is carried out, and is
 * work for each of them.
 *
 * OWNERSHIP  The world's. Each connection is the wire's: it frees it by wire_far.closed().
 * THREAD     main.
 * ERRORS     What it does not know is answered by an error.
 */
#ifndef SIM_REDIS_SERVER_H
#define SIM_REDIS_SERVER_H

#include "sim/stage.h"

struct redis_server *redis_server_new(struct world *);
void redis_server_free(struct redis_server **); /* after all nodes */

struct wire_far redis_server_far(struct stage *); /* how this node reaches it */

#endif
