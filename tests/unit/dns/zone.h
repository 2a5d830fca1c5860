/* zone.h - the names that the name server of test_dns.c knows, and its tricks.
 *
 * The beginning of a name says what becomes of a question: nx, nodata, servfail, refused, silent,
 * late (answers when it was first asked for ZONE_LATE_MS ago), formerr and notimp (to EDNS), alias1 to alias3, loop1 and loop2; MX records for good, null, own,
 * backup, lost, unsure, torn, medium, big, crowd, doubt. All others have an IPv4 address, and no MX record.
 *
 * THREAD     The name server's; zone_awake: any.
 */
#ifndef TESTS_UNIT_DNS_ZONE_H
#define TESTS_UNIT_DNS_ZONE_H

#include "base/clock.h"
#include "tests/unit/dns/nameserver.h"

static atomic_bool zone_awake; /* silent names answer after all */
static _Atomic int64_t zone_late_since_ms;

enum { ZONE_LATE_MS = 1000 };

static inline bool zone_starts(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

static inline void zone_fail(struct wire *w, unsigned rcode)
{
	w->data[3] = (uint8_t)((w->data[3] & 0xf0) | rcode);
}

/* Sixty, of which the last has an address, or none, while the first can't be looked up. */
static inline void zone_crowd(const char *name, struct wire *w)
{
	char target[80];
	bool crowd = zone_starts(name, "crowd");
	for (int i = 0; i < 60; i++) {
		snprintf(target, sizeof target, "nx%d.test", i);
		wire_mx(w, name, 60, (unsigned)i,
			crowd && i == 59   ? "mx.test"
			: !crowd && i == 0 ? "servfail.test"
					   : target);
	}
}

/* The zone's MX records; false: there are none for this name. */
static inline bool zone_mx(const char *name, struct wire *w)
{
	char target[80];
	if (zone_starts(name, "good"))
		wire_mx(w, name, 60, 10, "mx.test");
	else if (zone_starts(name, "null"))
		wire_mx(w, name, 60, 0, "");
	else if (zone_starts(name, "own"))
		wire_mx(w, name, 60, 10, "Relay.Test");
	else if (zone_starts(name, "backup"))
		wire_mx(w, name, 60, 20, "relay.test"), wire_mx(w, name, 60, 10, "mx.test");
	else if (zone_starts(name, "lost"))
		wire_mx(w, name, 60, 10, "nx.test"), wire_mx(w, name, 60, 20, "nodata.test");
	else if (zone_starts(name, "lame"))
		wire_mx(w, name, 60, 10, "mx.test"), wire_mx(w, name, 60, 20, "silent.test"),
			wire_mx(w, name, 60, 30, "servfail.test");
	else if (zone_starts(name, "unsure"))
		wire_mx(w, name, 60, 10, "nx.test"), wire_mx(w, name, 60, 20, "servfail.test");
	else if (zone_starts(name, "torn"))
		wire_record(w, WIRE_ANSWER, name, WIRE_MX, 60, "\0", 1);
	else if (zone_starts(name, "big") || zone_starts(name, "medium"))
		for (int i = 0; i < (name[0] == 'b' ? 60 : 20); i++) {
			snprintf(target, sizeof target, "host-with-a-long-name-%d.test", i);
			wire_mx(w, name, 60, (unsigned)i, target);
		}
	else if (zone_starts(name, "crowd") || zone_starts(name, "doubt"))
		zone_crowd(name, w);
	else
		return false;
	return true;
}

/* Of one such name a test. */
static inline bool zone_is_time(void)
{
	int64_t now_ms = clock_steady_ms(), none = 0;
	atomic_compare_exchange_strong(&zone_late_since_ms, &none, now_ms);
	return now_ms - atomic_load(&zone_late_since_ms) >= ZONE_LATE_MS;
}

static inline bool zone_special(const struct nameserver_question *q, struct wire *w)
{
	if (zone_starts(q->name, "nx"))
		zone_fail(w, WIRE_NXDOMAIN), wire_soa(w, "test", 60, 60);
	else if (zone_starts(q->name, "nodata"))
		wire_soa(w, "test", 60, 60);
	else if (zone_starts(q->name, "servfail"))
		zone_fail(w, WIRE_SERVFAIL);
	else if (zone_starts(q->name, "refused"))
		zone_fail(w, WIRE_REFUSED);
	else if (zone_starts(q->name, "silent") && !zone_awake)
		w->len = 0;
	else if (zone_starts(q->name, "late") && !zone_is_time())
		w->len = 0;
	else if (q->room && zone_starts(q->name, "formerr"))
		zone_fail(w, WIRE_FORMERR);
	else if (q->room && zone_starts(q->name, "notimp"))
		zone_fail(w, WIRE_NOTIMP);
	else if (zone_starts(q->name, "alias1"))
		wire_cname(w, q->name, 60, "alias2.test"),
			wire_cname(w, "alias2.test", 60, "alias3.test");
	else if (zone_starts(q->name, "alias3"))
		wire_cname(w, q->name, 60, "good.test");
	else if (zone_starts(q->name, "loop1"))
		wire_cname(w, q->name, 60, "loop2.test");
	else if (zone_starts(q->name, "loop2"))
		wire_cname(w, q->name, 60, "loop1.test");
	else
		return false;
	return true;
}

static inline void zone_answer(const struct nameserver_question *q, struct wire *w)
{
	uint32_t ttl = zone_starts(q->name, "ttl") ? 3 : zone_starts(q->name, "zero") ? 0 : 60;
	if (zone_special(q, w) || (q->type == WIRE_MX && zone_mx(q->name, w)))
		return;
	if (q->type == WIRE_A)
		wire_address(w, q->name, ttl,
			     zone_starts(q->name, "local") ? "127.0.0.5" : "192.0.2.1");
	else if (q->type == WIRE_AAAA && zone_starts(q->name, "mx"))
		wire_address(w, q->name, ttl, "2001:db8::1");
	else
		wire_soa(w, "test", 60, 60);
}

#endif
