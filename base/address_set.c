/* SPDX-License-Identifier: ISC */
#include "base/address_set.h"

#include "base/keyed_hash.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* One of its addresses. */
struct address_set {
	UT_hash_handle hh;
	char lower[];
};

bool address_set_add(struct address_set **set, const char *address)
{
	size_t len = strlen(address);
	struct address_set *there, *new = mem_alloc(sizeof *new + len + 1);
	for (size_t i = 0; i <= len; i++)
		new->lower[i] = (char)tolower((unsigned char)address[i]);
	HASH_FIND(hh, *set, new->lower, len, there);
	if (there) {
		free(new);
		return false;
	}
	HASH_ADD_KEYPTR(hh, *set, new->lower, len, new);
	return true;
}

void address_set_free(struct address_set **set)
{
	struct address_set *one, *next;
	HASH_ITER(hh, *set, one, next)
	{
		HASH_DEL(*set, one);
		free(one);
	}
}
