/* SPDX-License-Identifier: ISC */
#include "dns/answer.h"

#include "base/buf.h"
#include "base/mem.h"
#include "dns/dnsname.h"

#include <assert.h>
#include <ldns/ldns.h>
#include <stdlib.h>
#include <string.h>

struct answer *answer_failed(const char *why)
{
	struct answer *a = mem_zalloc(sizeof *a);
	a->refs = 1;
	a->status = ANSWER_FAILED;
	a->why = why ? mem_strdup(why) : NULL;
	return a;
}

struct answer *answer_ref(struct answer *a)
{
	assert(a->refs > 0);
	a->refs++;
	return a;
}

static size_t bytes_of_text(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

size_t answer_bytes(const struct answer *a)
{
	size_t all = sizeof *a + bytes_of_text(a->alias) + bytes_of_text(a->canonical);
	for (int i = 0; i < a->nrecord; i++) {
		const struct answer_record *r = &a->record[i];
		all += sizeof *r + bytes_of_text(r->target) + r->tlsa.len + bytes_of_text(r->txt);
	}
	return all;
}

static void free_record(struct answer_record *r)
{
	free(r->target);
	free(r->tlsa.data);
	free(r->txt);
}

static void drop_records(struct answer *a, int from)
{
	for (int i = from; i < a->nrecord; i++)
		free_record(&a->record[i]);
	if (from < a->nrecord)
		a->nrecord = from;
}

void answer_unref(struct answer *a)
{
	if (!a)
		return;
	assert(a->refs > 0);
	if (--a->refs > 0)
		return;
	drop_records(a, 0);
	free(a->record);
	free(a->alias);
	free(a->canonical);
	free(a->why);
	free(a);
}

static enum dnsname name_of(const ldns_rdf *rdf, char name[DNSNAME_SIZE])
{
	if (!rdf || ldns_rdf_get_type(rdf) != LDNS_RDF_TYPE_DNAME)
		return DNSNAME_BAD;
	return dnsname_from_wire(ldns_rdf_data(rdf), ldns_rdf_size(rdf), name);
}

static bool is_about(const ldns_rr *rr, const char *name, ldns_rr_type type)
{
	char owner[DNSNAME_SIZE];
	return ldns_rr_get_type(rr) == type && ldns_rr_get_class(rr) == LDNS_RR_CLASS_IN &&
	       name_of(ldns_rr_owner(rr), owner) == DNSNAME_HOST && strcmp(owner, name) == 0;
}

/* Why the reply can't be used at all, or NULL. */
static const char *why_unusable(const ldns_pkt *pkt, const char *name, ldns_rr_type type)
{
	if (!ldns_pkt_qr(pkt) || ldns_pkt_get_opcode(pkt) != LDNS_PACKET_QUERY)
		return "the reply is no reply";
	if (ldns_pkt_qdcount(pkt) != 1 ||
	    !is_about(ldns_rr_list_rr(ldns_pkt_question(pkt), 0), name, type))
		return "the reply is to another question";
	if (ldns_pkt_edns_extended_rcode(pkt) != 0)
		return "BADVERS";
	switch (ldns_pkt_get_rcode(pkt)) {
	case LDNS_RCODE_NOERROR:
	case LDNS_RCODE_NXDOMAIN:
		return ldns_pkt_tc(pkt) ? "the reply is truncated" : NULL;
	case LDNS_RCODE_FORMERR:
		return "FORMERR";
	case LDNS_RCODE_SERVFAIL:
		return "SERVFAIL";
	case LDNS_RCODE_NOTIMPL:
		return "NOTIMP";
	case LDNS_RCODE_REFUSED:
		return "REFUSED";
	default:
		return "the reply has an unknown result code";
	}
}

/* A server that knows no EDNS may answer without repeating the question. */
static bool has_choked(const ldns_pkt *pkt)
{
	ldns_pkt_rcode rcode = ldns_pkt_get_rcode(pkt);
	return rcode == LDNS_RCODE_FORMERR || rcode == LDNS_RCODE_NOTIMPL ||
	       ldns_pkt_edns_extended_rcode(pkt) != 0;
}

static void shorten_ttl(struct answer *a, const ldns_rr *rr)
{
	int64_t ttl_ms = (int64_t)ldns_rr_ttl(rr) * 1000;
	if (ttl_ms < a->ttl_ms)
		a->ttl_ms = ttl_ms;
}

/* Follow the CNAME records within the reply; name ends as the last of the chain. */
static const char *follow_cnames(struct answer *a, const ldns_rr_list *list,
				 char name[DNSNAME_SIZE])
{
	for (size_t i = 0; i < ldns_rr_list_rr_count(list);) {
		const ldns_rr *rr = ldns_rr_list_rr(list, i++);
		if (!is_about(rr, name, LDNS_RR_TYPE_CNAME))
			continue;
		if (++a->chased > ANSWER_CHASE_MAX)
			return "a CNAME loop, or a chain too long";
		if (ldns_rr_rd_count(rr) != 1 || name_of(ldns_rr_rdf(rr, 0), name) != DNSNAME_HOST)
			return "a CNAME record to what is no host name";
		shorten_ttl(a, rr);
		i = 0;
	}
	return NULL;
}

static bool read_address(const ldns_rdf *rdf, struct answer_record *to)
{
	size_t size = rdf ? ldns_rdf_size(rdf) : 0;
	if (size == sizeof to->address.in.sin_addr) {
		to->address.in.sin_family = AF_INET;
		memcpy(&to->address.in.sin_addr, ldns_rdf_data(rdf), size);
	} else if (size == sizeof to->address.in6.sin6_addr) {
		to->address.in6.sin6_family = AF_INET6;
		memcpy(&to->address.in6.sin6_addr, ldns_rdf_data(rdf), size);
	} else {
		return false;
	}
	return true;
}

static bool read_mx(const ldns_rr *rr, struct answer_record *to)
{
	const ldns_rdf *preference = ldns_rr_rdf(rr, 0), *target = ldns_rr_rdf(rr, 1);
	char name[DNSNAME_SIZE];
	if (!preference || ldns_rdf_size(preference) != 2 || !target ||
	    ldns_rdf_get_type(target) != LDNS_RDF_TYPE_DNAME)
		return false;
	to->preference = ldns_rdf2native_int16(preference);
	if (name_of(target, name) != DNSNAME_BAD)
		to->target = mem_strdup(name);
	return true;
}

static bool read_octet(const ldns_rdf *rdf, uint8_t *to)
{
	bool good = rdf && ldns_rdf_size(rdf) == 1;
	if (good)
		*to = ldns_rdf_data(rdf)[0];
	return good;
}

/* RFC 6698 2.1. One that breaks off is a record like others that nothing can be made of: what it lacks is of
 * no use that is assigned. */
static bool read_tlsa(const ldns_rr *rr, struct resolve_tlsa *to)
{
	uint8_t *const field[] = {&to->usage, &to->selector, &to->matching};
	const ldns_rdf *data = ldns_rr_rdf(rr, 3);
	for (size_t i = 0; i < sizeof field / sizeof *field; i++)
		if (!read_octet(ldns_rr_rdf(rr, i), field[i]))
			*field[i] = UINT8_MAX;
	to->len = data ? ldns_rdf_size(data) : 0;
	to->data = mem_alloc(to->len ? to->len : 1);
	if (to->len > 0)
		memcpy(to->data, ldns_rdf_data(data), to->len);
	return true;
}

static bool read_cname(const ldns_rr *rr, struct answer_record *to)
{
	char name[DNSNAME_SIZE];
	if (name_of(ldns_rr_rdf(rr, 0), name) != DNSNAME_HOST)
		return false;
	to->target = mem_strdup(name);
	return true;
}

static void take_string(struct buf *to, const uint8_t *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf_append(to, s[i] >= ' ' && s[i] <= '~' ? (const char *)&s[i] : "?", 1);
}

/* RFC 1035 3.3.14: strings, each behind its length. */
static bool read_txt(const ldns_rr *rr, struct answer_record *to)
{
	struct buf all = {0};
	for (size_t i = 0; i < ldns_rr_rd_count(rr); i++) {
		const ldns_rdf *rdf = ldns_rr_rdf(rr, i);
		const uint8_t *s = ldns_rdf_data(rdf);
		if (ldns_rdf_get_type(rdf) != LDNS_RDF_TYPE_STR || ldns_rdf_size(rdf) < 1 ||
		    ldns_rdf_size(rdf) != (size_t)s[0] + 1) {
			buf_fini(&all);
			return false;
		}
		take_string(&all, s + 1, s[0]);
	}
	to->txt = buf_steal(&all, NULL);
	return true;
}

static bool read_record(const ldns_rr *rr, enum answer_type type, struct answer_record *to)
{
	if (type == ANSWER_TXT)
		return read_txt(rr, to);
	if (type == ANSWER_MX)
		return ldns_rr_rd_count(rr) == 2 && read_mx(rr, to);
	if (type == ANSWER_TLSA)
		return read_tlsa(rr, &to->tlsa);
	if (type == ANSWER_CNAME)
		return ldns_rr_rd_count(rr) == 1 && read_cname(rr, to);
	return ldns_rr_rd_count(rr) == 1 && read_address(ldns_rr_rdf(rr, 0), to) &&
	       to->address.sa.sa_family == (type == ANSWER_A ? AF_INET : AF_INET6);
}

static int by_preference(const void *left, const void *right)
{
	const struct answer_record *a = left, *b = right;
	return (int)a->preference - (int)b->preference;
}

static int most_of(enum answer_type type)
{
	if (type == ANSWER_MX)
		return ANSWER_MX_MAX;
	return type == ANSWER_TLSA ? ANSWER_TLSA_MAX : ANSWER_ADDRESS_MAX;
}

static const char *collect_records(struct answer *a, const ldns_rr_list *list, const char *name,
				   enum answer_type type)
{
	size_t n = ldns_rr_list_rr_count(list);
	a->record = mem_zalloc((n ? n : 1) * sizeof *a->record);
	for (size_t i = 0; i < n; i++) {
		const ldns_rr *rr = ldns_rr_list_rr(list, i);
		if (!is_about(rr, name, (ldns_rr_type)type))
			continue;
		if (!read_record(rr, type, &a->record[a->nrecord]))
			return "a malformed record";
		a->nrecord++;
		shorten_ttl(a, rr);
	}
	if (type == ANSWER_MX)
		qsort(a->record, (size_t)a->nrecord, sizeof *a->record, by_preference);
	drop_records(a, most_of(type));
	a->record = mem_realloc(a->record, (size_t)a->nrecord * sizeof *a->record);
	return NULL;
}

static const ldns_rr *first_of(const ldns_rr_list *list, ldns_rr_type type)
{
	for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++)
		if (ldns_rr_get_type(ldns_rr_list_rr(list, i)) == type)
			return ldns_rr_list_rr(list, i);
	return NULL;
}

/* No records: how sure is that, and for how long. RFC 2308 2.2, 5. */
static const char *read_absence(struct answer *a, const ldns_pkt *pkt, const char *name,
				ldns_rr_type type)
{
	const ldns_rr_list *authority = ldns_pkt_authority(pkt);
	const ldns_rr *soa = first_of(authority, LDNS_RR_TYPE_SOA);
	const ldns_rdf *minimum = soa && ldns_rr_rd_count(soa) == 7 ? ldns_rr_rdf(soa, 6) : NULL;
	bool nxdomain = ldns_pkt_get_rcode(pkt) == LDNS_RCODE_NXDOMAIN;
	a->status = nxdomain ? ANSWER_NXDOMAIN : ANSWER_NODATA;
	if (minimum && ldns_rdf_size(minimum) == 4) {
		int64_t minimum_ms = (int64_t)ldns_rdf2native_int32(minimum) * 1000;
		shorten_ttl(a, soa);
		if (minimum_ms < a->ttl_ms)
			a->ttl_ms = minimum_ms;
		return NULL;
	}
	if (!nxdomain && a->chased > 0) {
		a->status = ANSWER_ALIAS;
		a->alias = mem_strdup(name);
		return NULL;
	}
	/* Neither records of another name nor a referral say anything about this one: to take them for "no records" would
	 * bounce mail. */
	if (!nxdomain && first_of(ldns_pkt_answer(pkt), type))
		return "the reply has records of another name";
	if (!nxdomain && !ldns_pkt_aa(pkt) && first_of(authority, LDNS_RR_TYPE_NS))
		return "a referral, not an answer";
	a->ttl_ms = 0;
	return NULL;
}

static const char *read_reply(struct answer *a, const ldns_pkt *pkt, const char *asked,
			      enum answer_type type)
{
	char name[DNSNAME_SIZE];
	const char *why = why_unusable(pkt, asked, (ldns_rr_type)type);
	a->choked = has_choked(pkt);
	if (why)
		return why;
	a->ttl_ms = INT64_MAX;
	a->authentic = ldns_pkt_ad(pkt);
	strcpy(name, asked);
	why = type == ANSWER_CNAME ? NULL : follow_cnames(a, ldns_pkt_answer(pkt), name);
	if (a->chased > 0)
		a->canonical = mem_strdup(name);
	if (!why)
		why = collect_records(a, ldns_pkt_answer(pkt), name, type);
	if (why || a->nrecord > 0)
		return why;
	return read_absence(a, pkt, name, (ldns_rr_type)type);
}

struct answer *answer_parse(const void *bytes, size_t len, const char *name, enum answer_type type)
{
	assert(strlen(name) < DNSNAME_SIZE);
	ldns_pkt *pkt = NULL;
	if (ldns_wire2pkt(&pkt, bytes, len) != LDNS_STATUS_OK)
		return answer_failed("a malformed reply");
	struct answer *a = answer_failed(NULL);
	a->status = ANSWER_RECORDS;
	const char *why = read_reply(a, pkt, name, type);
	ldns_pkt_free(pkt);
	if (!why)
		return a;
	struct answer *failed = answer_failed(why);
	failed->choked = a->choked;
	answer_unref(a);
	return failed;
}

bool answer_null_mx(const struct answer *a)
{
	return a->status == ANSWER_RECORDS && a->nrecord == 1 && a->record[0].target &&
	       !a->record[0].target[0];
}
