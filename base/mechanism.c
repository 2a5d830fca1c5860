/* SPDX-License-Identifier: ISC */
#include "base/mechanism.h"

#include <assert.h>
#include <strings.h>

static const struct mechanism_row rows[] = {
#define X(constant, name, hash, plus, token) {name, hash, plus, token},
	MECHANISMS(X)
#undef X
};

const struct mechanism_row *mechanism_row(enum mechanism m)
{
	assert(m >= 0 && m < MECHANISM_COUNT);
	return &rows[m];
}

enum mechanism mechanism_find(const char *name)
{
	int m = 0;
	while (m < MECHANISM_COUNT && strcasecmp(rows[m].name, name) != 0)
		m++;
	return (enum mechanism)m;
}
