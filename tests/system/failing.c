/* SPDX-License-Identifier: ISC */
/* The relay with an allocation that fails: "fail N" on its control socket lets the N-th from then on
 * return NULL, whoever asks for it, the program or a library; "fail 0" none. The answer says how many there were
 * since the order before. */
#include "cmd/control/control.h"
#include "cmd/relay/requests.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

void __real_requests_handle(void *owner, struct request *);
void __wrap_requests_handle(void *owner, struct request *);

static atomic_long asked, fails_at;

static bool fails(void)
{
	long n = atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed) + 1;
	if (n != atomic_load_explicit(&fails_at, memory_order_relaxed))
		return false;
	errno = ENOMEM;
	return true;
}

/* The program's own come before the C library's, for all libraries too. */
void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}

void __wrap_requests_handle(void *owner, struct request *r)
{
	if (r->argc < 2 || strcmp(r->argv[0], "fail") != 0) {
		__real_requests_handle(owner, r);
		return;
	}
	struct buf says = {0};
	long at = strtol(r->argv[1], NULL, 10);
	buf_printf(&says, "%ld\n", atomic_load(&asked));
	control_say(r, buf_data(&says), buf_len(&says));
	buf_fini(&says);
	control_finish(r, 0);
	/* What answering takes from here on counts too. */
	atomic_store(&fails_at, 0);
	atomic_store(&asked, 0);
	atomic_store(&fails_at, at);
}
