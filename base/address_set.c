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
	int number;
	char lower[];
};

static struct address_set *address_new(const char *address, size_t len)
{
	struct address_set *new = mem_zalloc(sizeof *new + len + 1);
	for (size_t i = 0; i <= len; i++)
		new->lower[i] = (char)tolower((unsigned char)address[i]);
	return new;
}

/* The one that is there, or that is put there now. */
static struct address_set *find_or_add(struct address_set **set, const char *address, bool *fresh)
{
	size_t len = strlen(address);
	struct address_set *there, *new = address_new(address, len);
	HASH_FIND(hh, *set, new->lower, len, there);
	*fresh = !there;
	if (there) {
		free(new);
		return there;
	}
	HASH_ADD_KEYPTR(hh, *set, new->lower, len, new);
	return new;
}

bool address_set_add(struct address_set **set, const char *address)
{
	bool fresh;
	find_or_add(set, address, &fresh);
	return fresh;
}

void address_set_number(struct address_set **set, const char *address, int number)
{
	bool fresh;
	find_or_add(set, address, &fresh)->number = number;
}

int address_set_number_of(struct address_set *const *set, const char *address)
{
	size_t len = strlen(address);
	struct address_set *there, *key = address_new(address, len);
	HASH_FIND(hh, *set, key->lower, len, there);
	free(key);
	return there ? there->number : 0;
}

void address_set_free(struct address_set **set)
{
	hash_each (struct address_set, one, *set) {
		HASH_DEL(*set, one);
		free(one);
	}
}
