/* SPDX-License-Identifier: ISC */
#include "base/trust_anchor.h"

#include "base/file_io.h"

#include <errno.h>
#include <ldns/ldns.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_anchor(const ldns_rr *rr)
{
	return ldns_rr_get_type(rr) == LDNS_RR_TYPE_DS ||
	       ldns_rr_get_type(rr) == LDNS_RR_TYPE_DNSKEY;
}

static bool is_root(const ldns_rr *rr)
{
	return ldns_rdf_size(ldns_rr_owner(rr)) == 1;
}

/* One record of the file; 1 taken, 0 none there, -1 a fault. */
static int read_record(struct trust_anchor *t, FILE *stream, int *line, bool *root)
{
	ldns_rr *rr = NULL;
	uint32_t ttl = 3600;
	ldns_status status = ldns_rr_new_frm_fp_l(&rr, stream, &ttl, NULL, NULL, line);
	if (status == LDNS_STATUS_SYNTAX_EMPTY || status == LDNS_STATUS_SYNTAX_TTL ||
	    status == LDNS_STATUS_SYNTAX_ORIGIN)
		return 0;
	if (status != LDNS_STATUS_OK || !is_anchor(rr) || t->n == TRUST_ANCHORS_MAX) {
		if (status == LDNS_STATUS_OK)
			ldns_rr_free(rr);
		return -1;
	}
	*root |= is_root(rr);
	t->record[t->n++] = ldns_rr2str(rr);
	ldns_rr_free(rr);
	return 1;
}

static bool read_records(struct trust_anchor *t, FILE *stream, const char *file, struct buf *why)
{
	int line = 1, at;
	bool root = false;
	while (!feof(stream) && !ferror(stream)) {
		at = line;
		if (read_record(t, stream, &line, &root) >= 0)
			continue;
		buf_printf(why, "%s:%d: no DS or DNSKEY record", file, at);
		return false;
	}
	if (ferror(stream))
		buf_printf(why, "%s: can't be read", file);
	else if (!root)
		buf_printf(why, "%s: no DS or DNSKEY record of the root", file);
	return root && !ferror(stream);
}

bool trust_anchor_read(struct trust_anchor *t, const char *file, struct buf *why)
{
	FILE *stream = file_open(file);
	*t = (struct trust_anchor){.n = 0};
	if (!stream) {
		buf_printf(why, "%s: %s", file, strerror(errno));
		return false;
	}
	bool good = read_records(t, stream, file, why);
	fclose(stream);
	if (!good)
		trust_anchor_fini(t);
	return good;
}

void trust_anchor_fini(struct trust_anchor *t)
{
	while (t->n > 0)
		free(t->record[--t->n]);
}
