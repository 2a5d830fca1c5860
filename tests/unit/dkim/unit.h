/* unit.h - what every unit test of this folder begins with: cmocka and what it wants before it. */
#ifndef TESTS_UNIT_DKIM_UNIT_H
#define TESTS_UNIT_DKIM_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define RUN(tests) cmocka_run_group_tests(tests, NULL, NULL)

#endif
