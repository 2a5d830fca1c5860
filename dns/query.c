/* SPDX-License-Identifier: ISC */
#include "dns/query.h"

#include <ldns/ldns.h>

uint8_t *query_build(const char *name, unsigned type, enum query_edns edns, uint16_t id,
		     size_t *size)
{
	uint8_t *bytes = NULL;
	ldns_rdf *owner = ldns_dname_new_frm_str(*name ? name : ".");
	if (!owner)
		return NULL;
	ldns_pkt *pkt = ldns_pkt_query_new(owner, (ldns_rr_type)type, LDNS_RR_CLASS_IN, LDNS_RD);
	if (!pkt) {
		ldns_rdf_deep_free(owner);
		return NULL;
	}
	ldns_pkt_set_id(pkt, id);
	if (edns != QUERY_PLAIN)
		ldns_pkt_set_edns_udp_size(pkt, QUERY_EDNS_BYTES);
	if (edns == QUERY_EDNS_DO) {
		ldns_pkt_set_edns_do(pkt, true);
		ldns_pkt_set_ad(pkt, true);
	}
	ldns_pkt_set_cd(pkt, edns == QUERY_EDNS_CD);
	if (ldns_pkt2wire(&bytes, pkt, size) != LDNS_STATUS_OK)
		bytes = NULL;
	ldns_pkt_free(pkt);
	return bytes;
}
