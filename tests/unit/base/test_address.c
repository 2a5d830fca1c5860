/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/address.h"

#include <arpa/inet.h>
#include <string.h>

static void each_byte_is_written_as_the_library_does(void **state)
{
	(void)state;
	char ours[64], theirs[64], mapped[64];
	for (unsigned n = 0; n < 256; n++) {
		union address a = {.in = {.sin_family = AF_INET}};
		union address b = {.in6 = {.sin6_family = AF_INET6}};
		unsigned char four[] = {(unsigned char)n, (unsigned char)(255 - n),
					(unsigned char)(n / 2), (unsigned char)(n ^ 0x55)};
		memcpy(&a.in.sin_addr, four, sizeof four);
		memcpy(&b.in6.sin6_addr.s6_addr[12], four, sizeof four);
		memset(&b.in6.sin6_addr.s6_addr[10], 0xff, 2);
		inet_ntop(AF_INET, four, theirs, sizeof theirs);
		assert_string_equal(address_text(&a, ours), theirs);
		assert_string_equal(address_text(&b, mapped), theirs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_byte_is_written_as_the_library_does),
	};
	return RUN(tests);
}
