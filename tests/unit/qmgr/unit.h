/* unit.h - what the unit tests of this folder share: cmocka, and a configuration from a text. */
#ifndef TESTS_UNIT_QMGR_UNIT_H
#define TESTS_UNIT_QMGR_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RUN(tests) cmocka_run_group_tests(tests, NULL, NULL)

/* The configuration that this text is; the caller's to conf_unref(). */
static inline struct conf *conf_of(const char *text)
{
	char path[] = "/tmp/test_qmgr.XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	FILE *f = fdopen(fd, "w");
	fprintf(f, "%s\n# all of it\n", text);
	fclose(f);
	struct buf errors;
	buf_init(&errors);
	struct conf *c = conf_read(path, &errors);
	unlink(path);
	if (!c)
		print_error("%s", buf_cstr(&errors));
	assert_non_null(c);
	buf_fini(&errors);
	return c;
}

#endif
