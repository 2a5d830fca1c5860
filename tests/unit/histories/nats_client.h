/* nats_client.h - the functions of the NATS library that replica/ calls, and the network between them and jetstream.h.
 *
 *	replica/ -- natsConnection_..., js_..., kvStore_... --> on the way --> jetstream.h
 *	         <- answers, acknowledgements, callbacks ------ on the way <--
 *
 * What is under way when a connection breaks is lost, in either direction; a cut is noticed only after seconds, and
 * what was sent until then comes late if the cut ends before. While there is no connection the library keeps what is
 * published, and sends it when there is one.
 *
 * THREAD     One; calls that wait are a fiber's.
 */
#ifndef TESTS_UNIT_HISTORIES_NATS_CLIENT_H
#define TESTS_UNIT_HISTORIES_NATS_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

void nats_client_begin(uint64_t seed);
void nats_client_cut(int process, bool); /* it reaches no server */
void nats_client_servers(bool up);	 /* false: all of them end, and all connections */
void nats_client_leader(bool there);	 /* false: what is asked of JetStream is not answered */
void nats_client_elections(bool often);	 /* another leader, again and again: jetstream_elect() */
void nats_client_slow(int64_t most_us);	 /* each way */
bool nats_client_reaches(int process);
bool nats_client_answers(int process); /* and JetStream answers soon */

#endif
