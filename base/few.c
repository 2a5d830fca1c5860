/* SPDX-License-Identifier: ISC */
#include "base/few.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { MOST = 0 };
#else
enum { MOST = 256 };
#endif

struct few_kept {
	struct few_kept *next;
};

void few_init(struct few *f, size_t size)
{
	assert(size >= sizeof *f->kept);
	*f = (struct few){.size = size};
}

void few_fini(struct few *f)
{
	for (struct few_kept *one; (one = f->kept);) {
		f->kept = one->next;
		free(one);
		f->n--;
	}
	assert(f->n == 0);
}

void *few_take(struct few *f)
{
	struct few_kept *one = f->kept;
	assert(f->size > 0);
	if (!one)
		return mem_zalloc(f->size);
	f->kept = one->next;
	assert(f->n > 0);
	f->n--;
	return memset(one, 0, f->size);
}

void few_give(struct few *f, void *it)
{
	struct few_kept *one = it;
	assert(f->size > 0);
	if (f->n >= MOST) {
		free(it);
		return;
	}
	one->next = f->kept;
	f->kept = one;
	f->n++;
}
