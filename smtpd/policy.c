/* SPDX-License-Identifier: ISC */
#include "smtpd/policy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* "[127.0.0.1]" and its like: nobody's mail host but our own, or none at all. */
static bool literal_leads_here(const char *literal)
{
	char text[64];
	struct in6_addr six;
	struct in_addr four;
	snprintf(text, sizeof text, "%s", literal + 1);
	text[strcspn(text, "]")] = '\0';
	if (strncmp(text, "ipv6:", 5) == 0) {
		if (inet_pton(AF_INET6, text + 5, &six) != 1)
			return true;
		if (!IN6_IS_ADDR_V4MAPPED(&six) && !IN6_IS_ADDR_V4COMPAT(&six))
			return IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_UNSPECIFIED(&six);
		memcpy(&four, &six.s6_addr[12], 4);
	} else if (inet_pton(AF_INET, text, &four) != 1) {
		return true;
	}
	uint32_t first = ntohl(four.s_addr) >> 24;
	return first == 0 || first == 127;
}

bool policy_leads_here(const struct mailaddr *a)
{
	return a->literal && literal_leads_here(a->text + a->at + 1);
}

enum response policy_recipient(const struct session *s, struct mailaddr *a)
{
	const char *postmaster = s->service->conf->postmaster;
	if (a->text[a->at] == '\0') {
		if (!*postmaster)
			return RESPONSE_NO_POSTMASTER;
		return mailaddr_mailbox(postmaster, strlen(postmaster), true, a) == MAILADDR_OK
			       ? RESPONSE_OK
			       : RESPONSE_NO_POSTMASTER;
	}
	if (!netlist_match(&s->service->networks, &s->peer))
		return RESPONSE_NO_RELAY;
	if (policy_leads_here(a))
		return RESPONSE_LOOPBACK;
	return RESPONSE_OK;
}
