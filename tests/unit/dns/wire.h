/* wire.h - DNS packets written byte by byte, right or wrong as the test wants them.
 *
 *	wire_reply(&w, 0x1234, RCODE, "a.test", TYPE)       header and question
 *	wire_record(&w, WIRE_ANSWER, "a.test", TYPE, ttl, rdata, len)
 *
 * THREAD     Any.
 */
#ifndef TESTS_UNIT_DNS_WIRE_H
#define TESTS_UNIT_DNS_WIRE_H

#include <arpa/inet.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WIRE_A = 1, WIRE_NS = 2, WIRE_CNAME = 5, WIRE_SOA = 6, WIRE_MX = 15, WIRE_AAAA = 28 };
enum { WIRE_ANSWER = 6, WIRE_AUTHORITY = 8 }; /* where the section's count lies in the header */
enum { WIRE_FORMERR = 1, WIRE_SERVFAIL = 2, WIRE_NXDOMAIN = 3, WIRE_NOTIMP = 4, WIRE_REFUSED = 5 };

struct wire {
	uint8_t data[65535];
	size_t len;
};

static inline void wire_bytes(struct wire *w, const void *bytes, size_t len)
{
	memcpy(w->data + w->len, bytes, len);
	w->len += len;
}

static inline void wire_16(struct wire *w, unsigned n)
{
	uint8_t bytes[2] = {(uint8_t)(n >> 8), (uint8_t)n};
	wire_bytes(w, bytes, 2);
}

static inline void wire_32(struct wire *w, uint32_t n)
{
	wire_16(w, n >> 16);
	wire_16(w, n & 0xffff);
}

/* "" is the root. */
static inline size_t wire_name_to(uint8_t *to, const char *name)
{
	size_t at = 0;
	while (*name) {
		size_t len = strcspn(name, ".");
		to[at++] = (uint8_t)len;
		memcpy(to + at, name, len);
		at += len;
		name += len;
		if (*name == '.')
			name++;
	}
	to[at++] = 0;
	return at;
}

static inline void wire_name(struct wire *w, const char *name)
{
	w->len += wire_name_to(w->data + w->len, name);
}

static inline void wire_reply(struct wire *w, unsigned id, unsigned rcode, const char *name,
			      unsigned type)
{
	w->len = 0;
	wire_16(w, id);
	wire_16(w, 0x8180 | rcode); /* QR RD RA */
	wire_16(w, 1);
	wire_16(w, 0);
	wire_16(w, 0);
	wire_16(w, 0);
	wire_name(w, name);
	wire_16(w, type);
	wire_16(w, 1);
}

static inline void wire_count(struct wire *w, int section)
{
	unsigned n = (unsigned)(w->data[section] << 8 | w->data[section + 1]) + 1;
	w->data[section] = (uint8_t)(n >> 8);
	w->data[section + 1] = (uint8_t)n;
}

static inline void wire_record(struct wire *w, int section, const char *owner, unsigned type,
			       uint32_t ttl, const void *rdata, size_t len)
{
	wire_count(w, section);
	wire_name(w, owner);
	wire_16(w, type);
	wire_16(w, 1);
	wire_32(w, ttl);
	wire_16(w, (unsigned)len);
	wire_bytes(w, rdata, len);
}

static inline void wire_mx(struct wire *w, const char *owner, uint32_t ttl, unsigned preference,
			   const char *target)
{
	uint8_t rdata[300] = {(uint8_t)(preference >> 8), (uint8_t)preference};
	wire_record(w, WIRE_ANSWER, owner, WIRE_MX, ttl, rdata,
		    2 + wire_name_to(rdata + 2, target));
}

static inline void wire_cname(struct wire *w, const char *owner, uint32_t ttl, const char *target)
{
	uint8_t rdata[300];
	wire_record(w, WIRE_ANSWER, owner, WIRE_CNAME, ttl, rdata, wire_name_to(rdata, target));
}

static inline void wire_address(struct wire *w, const char *owner, uint32_t ttl, const char *text)
{
	uint8_t rdata[16];
	if (inet_pton(AF_INET, text, rdata) == 1)
		wire_record(w, WIRE_ANSWER, owner, WIRE_A, ttl, rdata, 4);
	else if (inet_pton(AF_INET6, text, rdata) == 1)
		wire_record(w, WIRE_ANSWER, owner, WIRE_AAAA, ttl, rdata, 16);
}

static inline void wire_soa(struct wire *w, const char *zone, uint32_t ttl, uint32_t minimum)
{
	struct wire r = {.len = 0};
	wire_name(&r, "ns.test");
	wire_name(&r, "hostmaster.test");
	for (int i = 0; i < 4; i++)
		wire_32(&r, 1);
	wire_32(&r, minimum);
	wire_record(w, WIRE_AUTHORITY, zone, WIRE_SOA, ttl, r.data, r.len);
}

#endif
