/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/site_name.h"

#include "base/mem.h"

#include <string.h>

/* No host, domain or mailbox begins so: no MX record leads to a site by relays. */
#define BY_RELAYS "relay:"
#define RELAYS_END '>'

char *site_name_key(const char *transport, const char *relays, const char *name)
{
	return relays ? mem_printf("%s " BY_RELAYS "%s%c%s", transport, relays, RELAYS_END, name)
		      : mem_printf("%s %s", transport, name);
}

static const char *behind_transport(const char *key)
{
	return strchr(key, ' ') + 1;
}

const char *site_name_in(const char *key)
{
	const char *behind = behind_transport(key);
	bool relays = strncmp(behind, BY_RELAYS, strlen(BY_RELAYS)) == 0;
	const char *end = relays ? strchr(behind, RELAYS_END) : NULL;
	return end ? end + 1 : behind;
}

bool site_name_by_relays(const char *key)
{
	return site_name_in(key) != behind_transport(key);
}
