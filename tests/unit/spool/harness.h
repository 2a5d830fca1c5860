/* harness.h - a queue in a folder of its own, and a client that is both smtpd and qmgr.
 *
 * The spool runs its real thread; the client runs its loop only inside harness_wait(), so that a
 * test reads from top to bottom.
 *
 * OWNERSHIP  harness_fini() removes the folder.
 * THREAD     The test's.
 * ERRORS     What takes longer than WAIT_MS fails the test.
 */
#ifndef TESTS_UNIT_SPOOL_HARNESS_H
#define TESTS_UNIT_SPOOL_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "spool/spool.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 60000, HARNESS_MESSAGES = 120000 };

struct harness {
	char folder[200];
	struct conf *conf;
	struct loop *loop;
	struct spool *spool;
	int nstored, nrefused, narrival, ncancel, ncommand, ndisowned;
	struct spool_arrival *arrival[HARNESS_MESSAGES]; /* taken with harness_take() */
	int taken, nmoved, nunpark;
	bool urgent;   /* the arrival that was taken last */
	bool disowned; /* as the last answer says */
	struct content *moved;
	uint64_t stored[HARNESS_MESSAGES];
	uint64_t cancelled;
	struct spool_command *command;
	struct spool_unpark unpark; /* the last answer */
};

extern struct harness h; /* the one that the tests of a file use, one after the other */

int harness_setup(void **state); /* h, opened */
int harness_teardown(void **state);
#define HARNESS_TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

void harness_shell(const char *fmt, const char *a, const char *b); /* it must succeed */

void harness_receive(void *harness, struct note *); /* what its loop does with a note */
void harness_init(struct harness *);
void harness_open(struct harness *);
void harness_close(struct harness *);
void harness_fini(struct harness *);
void harness_crash(struct harness *);
/* What a crash at this moment leaves, as far as the kernel lives: the queue is copied as it is, the
 * old one closed, the copy takes its place. */

void harness_wait(struct harness *, const int *count, int n);
struct envelope *harness_envelope(int nrcpt);
struct spool_store *harness_new_store(struct harness *, int nrcpt, size_t size);
struct spool_store *harness_new_large(struct harness *, uint64_t id); /* in a file, adopted */
uint64_t harness_store(struct harness *, int nrcpt, size_t size);
void harness_credit(struct harness *, int64_t n);
void harness_delivered(struct harness *, uint64_t id, uint32_t rcpt, enum verdict_class class);
void harness_release(struct harness *, uint64_t id, struct envelope *e);
void harness_park(struct harness *, struct envelope *e, uint16_t site);
/* Release it; it waits for that site, or for its time. */

struct spool_unpark harness_unpark(struct harness *, uint16_t site, uint32_t most);
/* Order, and wait for the answer. */

struct envelope *harness_take(struct harness *);
/* The next arrival's envelope; its content is looked at and let go. */

struct spool_command *harness_ask(struct harness *, int op, uint64_t id, uint64_t after, int limit);
/* Ask, and wait for the answer; the caller frees it. */

void harness_command(struct harness *, struct spool_command *); /* likewise, one that is made */

void harness_pass(struct harness *, int n);
/* So many messages of 5000 bytes, one after the other, come, are delivered, and are gone. */

uint64_t harness_lose_proofs(struct harness *);
/* Three messages come together. One, which is returned, is put off for an hour; two are put off until now, and delivered, one
 * at once and one when the log has moved on. The segments that say so have gone; the content of the first has not. */

int harness_count(struct harness *); /* messages that the queue lists */

void harness_recovered(struct harness *, int n);
/* The queue lists this many, now or soon. */

int harness_files(const struct harness *, const char *folder);
int harness_segments(const struct harness *);
int harness_fewest_segments(const struct harness *, int most);
/* How many there are, once there are not more than most; how many still are, after WAIT_MS. */

#endif
