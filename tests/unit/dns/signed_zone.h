/* signed_zone.h - a root zone of a few names, signed as it is asked for.
 *
 *	signed_zone_open(file)  makes the key, and writes it to the file as a trust anchor
 *	signed_zone_answer      for nameserver_start()
 *
 * Every name is in the root zone itself. There is no reply about names that begin with "silent". What can't be changed while it is asked is
 * set before: signed_zone says what becomes of the signatures.
 *
 * THREAD     signed_zone_answer(): the name server's. signed_zone: any.
 */
#ifndef TESTS_UNIT_DNS_SIGNED_ZONE_H
#define TESTS_UNIT_DNS_SIGNED_ZONE_H

#include "tests/unit/dns/nameserver.h"

#include <ldns/ldns.h>

enum signed_zone {
	SIGNED_ZONE_GOOD,
	SIGNED_ZONE_STRIPPED,  /* no signatures */
	SIGNED_ZONE_NO_EDNS,   /* silent to questions with EDNS */
	SIGNED_ZONE_AUTHENTIC, /* no signatures, but the AD bit */
	SIGNED_ZONE_SILENT,
	SIGNED_ZONE_SERVFAIL,
	SIGNED_ZONE_SERVFAIL_ROOT, /* for the root, and no signatures for others */
};

static _Atomic enum signed_zone signed_zone;
static ldns_key_list *signed_zone_keys;
static ldns_rr *signed_zone_key;

static const char *const signed_zone_records[] = {
	". 60 IN SOA ns. hostmaster. 1 3600 600 86400 60",
	". 60 IN NS ns.",
	". 60 IN TXT \"root\"",
	"good.test. 60 IN MX 10 mx.test.",
	"mx.test. 60 IN A 192.0.2.1",
	"mx.test. 60 IN AAAA 2001:db8::1",
	"alias.test. 60 IN CNAME mx.test.",
	"evil.test. 60 IN MX 10 forged.test.",
	"forged.test. 60 IN A 192.0.2.2",
	"forged.test. 60 IN AAAA 2001:db8::2",
	"_25._tcp.mx.test. 60 IN TLSA 3 1 1 "
	"0101010101010101010101010101010101010101010101010101010101010101",
	"_25._tcp.mx.test. 60 IN TLSA 2 0 2 02",
};

static inline void signed_zone_open(const char *file)
{
	signed_zone_keys = ldns_key_list_new();
	ldns_key *key = ldns_key_new_frm_algorithm(LDNS_SIGN_ECDSAP256SHA256, 256);
	ldns_key_set_pubkey_owner(key, ldns_dname_new_frm_str("."));
	ldns_key_set_flags(key, LDNS_KEY_ZONE_KEY | LDNS_KEY_SEP_KEY);
	signed_zone_key = ldns_key2rr(key);
	ldns_rr_set_ttl(signed_zone_key, 60);
	ldns_key_set_keytag(key, ldns_calc_keytag(signed_zone_key));
	ldns_key_list_push_key(signed_zone_keys, key);
	FILE *stream = fopen(file, "w");
	fputs("; a root of the test's own\n\n", stream);
	ldns_rr_print(stream, signed_zone_key);
	fclose(stream);
}

static inline void signed_zone_close(void)
{
	ldns_rr_free(signed_zone_key);
	ldns_key_list_free(signed_zone_keys);
}

static inline void signed_zone_put(struct wire *w, const ldns_rr *rr)
{
	uint8_t *bytes = NULL;
	size_t size = 0;
	if (ldns_rr2wire(&bytes, rr, LDNS_SECTION_ANSWER, &size) != LDNS_STATUS_OK)
		abort();
	wire_count(w, WIRE_ANSWER);
	wire_bytes(w, bytes, size);
	free(bytes);
}

static inline ldns_rr_list *signed_zone_find(const struct nameserver_question *q)
{
	ldns_rr_list *found = ldns_rr_list_new();
	ldns_rdf *name = ldns_dname_new_frm_str(q->name[0] ? q->name : ".");
	if (q->name[0] == '\0' && q->type == LDNS_RR_TYPE_DNSKEY)
		ldns_rr_list_push_rr(found, ldns_rr_clone(signed_zone_key));
	for (size_t i = 0; i < sizeof signed_zone_records / sizeof *signed_zone_records; i++) {
		ldns_rr *rr = NULL;
		ldns_rr_new_frm_str(&rr, signed_zone_records[i], 60, NULL, NULL);
		bool wanted = ldns_rr_get_type(rr) == q->type ||
			      ldns_rr_get_type(rr) == LDNS_RR_TYPE_CNAME;
		if (wanted && ldns_dname_compare(ldns_rr_owner(rr), name) == 0)
			ldns_rr_list_push_rr(found, rr);
		else
			ldns_rr_free(rr);
	}
	ldns_rdf_deep_free(name);
	return found;
}

static inline void signed_zone_sign(struct wire *w, const struct nameserver_question *q,
				    ldns_rr_list *set)
{
	ldns_rr_list *signatures = ldns_sign_public(set, signed_zone_keys);
	for (size_t i = 0; i < ldns_rr_list_rr_count(signatures); i++)
		signed_zone_put(w, ldns_rr_list_rr(signatures, i));
	/* The signature is the record's last field. */
	if (strcmp(q->name, "forged.test") == 0)
		w->data[w->len - 1] ^= 1;
	ldns_rr_list_deep_free(signatures);
}

/* As RFC 6891 6.1.2 has it, with DO. */
static inline void signed_zone_edns(struct wire *w)
{
	static const uint8_t opt[] = {0, 0, 41, 16, 0, 0, 0, 0x80, 0, 0, 0};
	wire_count(w, 10);
	wire_bytes(w, opt, sizeof opt);
}

static inline void signed_zone_answer(const struct nameserver_question *q, struct wire *w)
{
	enum signed_zone how = signed_zone;
	if (how == SIGNED_ZONE_SILENT || (how == SIGNED_ZONE_NO_EDNS && q->room) ||
	    strncmp(q->name, "silent", 6) == 0) {
		w->len = 0;
		return;
	}
	if (how == SIGNED_ZONE_SERVFAIL || (how == SIGNED_ZONE_SERVFAIL_ROOT && !q->name[0])) {
		w->data[3] |= WIRE_SERVFAIL;
		return;
	}
	ldns_rr_list *set = signed_zone_find(q);
	for (size_t i = 0; i < ldns_rr_list_rr_count(set); i++)
		signed_zone_put(w, ldns_rr_list_rr(set, i));
	if (ldns_rr_list_rr_count(set) == 0)
		wire_soa(w, "", 60, 60);
	else if (how == SIGNED_ZONE_GOOD && q->room)
		signed_zone_sign(w, q, set);
	if (how == SIGNED_ZONE_AUTHENTIC)
		w->data[3] |= 0x20;
	if (q->room)
		signed_zone_edns(w);
	ldns_rr_list_deep_free(set);
}

#endif
