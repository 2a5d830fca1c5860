/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/stream.h"
#include "smtpd/proxy_header.h"

#include <string.h>

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define TCP4 "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x01\x00\x50\x00\x19"

/* Byte by byte and at once come to the same. What is not the header's stays. */
static struct proxy_header fed(const char *bytes, size_t len, size_t used)
{
	struct proxy_header whole = {0}, slow = {0};
	assert_int_equal(proxy_header_feed(&whole, (const unsigned char *)bytes, len), used);
	for (size_t i = 0; i < len && slow.state == PROXY_HEADER_MORE; i++)
		assert_int_equal(proxy_header_feed(&slow, (const unsigned char *)bytes + i, 1), 1);
	assert_int_equal(slow.state, whole.state);
	assert_memory_equal(&slow.client, &whole.client, sizeof slow.client);
	return whole;
}

static void is_client(const char *bytes, size_t len, size_t rest, const char *client, int port)
{
	char text[64];
	struct proxy_header h = fed(bytes, len, len - rest);
	assert_int_equal(h.state, PROXY_HEADER_CLIENT);
	assert_string_equal(address_text(&h.client, text), client);
	assert_int_equal(address_port(&h.client), port);
}

static void is_state(const char *bytes, size_t len, size_t rest, enum proxy_header_state state)
{
	assert_int_equal(fed(bytes, len, len - rest).state, state);
}

#define CLIENT(bytes, rest, client, port) is_client(bytes, sizeof bytes - 1, rest, client, port)
#define STATE(bytes, rest, state) is_state(bytes, sizeof bytes - 1, rest, PROXY_HEADER_##state)

static void the_first_version_is_a_line(void **state)
{
	(void)state;
	CLIENT("PROXY TCP4 192.0.2.1 198.51.100.1 56324 25\r\n", 0, "192.0.2.1", 56324);
	CLIENT("PROXY TCP4 192.0.2.1 198.51.100.1 56324 25\r\nEHLO", 4, "192.0.2.1", 56324);
	CLIENT("PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n\x16\x03", 2, "2001:db8::1", 1);
	STATE("PROXY UNKNOWN\r\n", 0, LOCAL);
	STATE("PROXY UNKNOWN ffff:: whatever it likes\r\nEHLO", 4, LOCAL);
	STATE("PROXY TCP4 192.0.2.1", 0, MORE);
}

/* One that is written so is the same client, for every limit and network. */
static void an_ipv4_client_in_disguise_is_that_client(void **state)
{
	(void)state;
	static const char line[] = "PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.1 56324 25\r\n";
	static const char binary[] = SIGNATURE "\x21\x21\x00\x24"
					       "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x01"
					       "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x33\x64\x01"
					       "\xdc\x04\0\x19";
	CLIENT(line, 0, "192.0.2.1", 56324);
	CLIENT(binary, 0, "192.0.2.1", 56324);
	assert_int_equal(fed(line, sizeof line - 1, sizeof line - 1).client.sa.sa_family, AF_INET);
	assert_int_equal(fed(binary, sizeof binary - 1, sizeof binary - 1).client.sa.sa_family,
			 AF_INET);
}

static void lines_that_are_wrong(void **state)
{
	(void)state;
	STATE("EHLO client.test\r\n", 17, BAD);
	STATE("PROXY TCP4 192.0.2.1 198.51.100.1 56324 25\n", 0, BAD);
	STATE("PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n", 0, BAD);
	STATE("PROXY TCP4 192.0.2.1 198.51.100.1 56324 25 1\r\n", 0, BAD);
	STATE("PROXY TCP4 192.0.2.1 198.51.100.1 65536 25\r\n", 0, BAD);
	STATE("PROXY TCP4 192.0.2.1 198.51.100.1 +1 25\r\n", 0, BAD);
	STATE("PROXY TCP4 2001:db8::1 2001:db8::2 1 25\r\n", 0, BAD);
	STATE("PROXY TCP4 192.0.2.1  198.51.100.1 1 25\r\n", 0, BAD);
	STATE("PROXY TCP4 192.0.2.1 198.51.100.1 1 25\0\r\n", 0, BAD);
	STATE("PROXY UDP4 192.0.2.1 198.51.100.1 1 25\r\n", 0, BAD);
	STATE("PROXY \r\n", 0, BAD);
	char lengthy[200];
	memset(lengthy, 'x', sizeof lengthy);
	memcpy(lengthy, "PROXY UNKNOWN ", 14);
	is_state(lengthy, sizeof lengthy, sizeof lengthy - 107, PROXY_HEADER_BAD);
}

static void the_second_version_is_binary(void **state)
{
	(void)state;
	CLIENT(SIGNATURE TCP4, 0, "192.0.2.1", 80);
	CLIENT(SIGNATURE TCP4 "\x16\x03\x01", 3, "192.0.2.1", 80);
	CLIENT(SIGNATURE "\x21\x11\x00\x0f\xc0\x00\x02\x01\xc6\x33\x64\x01\x00\x50\x00\x19"
			 "\x04\x00\x00"
			 "E",
	       1, "192.0.2.1", 80);
	CLIENT(SIGNATURE "\x21\x21\x00\x24"
			 "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
			 "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02"
			 "\x01\x00\x00\x19",
	       0, "2001:db8::1", 256);
	CLIENT(SIGNATURE "\x21\x21\x00\x24"
			 "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x09"
			 "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02"
			 "\x01\x00\x00\x19",
	       0, "192.0.2.9", 256);
	STATE(SIGNATURE "\x20\x00\x00\x00", 0, LOCAL);
	STATE(SIGNATURE "\x20\x11\x00\x03"
			"abcE",
	      1, LOCAL);
	STATE(SIGNATURE "\x21\x00\x00\x02"
			"ab",
	      0, LOCAL);
	STATE(SIGNATURE "\x21\x11\x00\x0c\xc0", 0, MORE);
	STATE(SIGNATURE "\x21\x11\xff\xff\xc0\x00\x02\x01\xc6\x33\x64\x01\x00\x50\x00\x19zz", 0,
	      MORE);
}

static void binaries_that_are_wrong(void **state)
{
	(void)state;
	STATE(SIGNATURE "\x11\x11\x00\x0c", 0, BAD);
	STATE(SIGNATURE "\x22\x11\x00\x0c", 0, BAD);
	STATE(SIGNATURE "\x21\x12\x00\x0c", 0, BAD);
	STATE(SIGNATURE "\x21\x31\x00\xd8", 0, BAD);
	STATE(SIGNATURE "\x21\x11\x00\x0b", 0, BAD);
	STATE(SIGNATURE "\x21\x21\x00\x0c", 0, BAD);
	STATE("\r\n\r\n\0\r\nQUIX\n", 1, BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_version_is_a_line),
		cmocka_unit_test(an_ipv4_client_in_disguise_is_that_client),
		cmocka_unit_test(lines_that_are_wrong),
		cmocka_unit_test(the_second_version_is_binary),
		cmocka_unit_test(binaries_that_are_wrong),
	};
	return RUN(tests);
}
