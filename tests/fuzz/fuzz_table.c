/* SPDX-License-Identifier: ISC */
/* A file of a table, as text or CDB, in any role: what is read has only values that can be used, and
 * an address that is rewritten and expanded by it comes to an end. The first byte is the role. */
#include "tests/fuzz/fuzz.h"

#include "base/alias_value.h"
#include "base/conf_value.h"
#include "base/mem.h"
#include "base/route_value.h"
#include "base/tables.h"
#include "smtpd/addressing.h"

static const char *const address[] = {
	"a@example.test",     "b@sub.example.test", "",
	"postmaster",	      "root@other.test",    "\"q q\"@x.test",
	"a@[192.0.2.1]",      "c@example.test",	    "list@example.test",
	"owner@example.test", "a+tag@example.test", "z@z"};

static char *cdb_name;

/* The setting of the role names this one file. */
static void name_file(struct conf *c, enum table_role role, char **item)
{
	struct conf_list *const list[TABLE_ROLES] = {
#define T(name, setting, ...) [TABLE_##name] = &c->setting,
		TABLES(T)
#undef T
	};
	*list[role] = (struct conf_list){item ? 1 : 0, item};
}

static void check_value(enum table_role role, const char *value)
{
	struct buf why;
	buf_init(&why);
	if (role == TABLE_RECIPIENT_ACCESS) {
		struct access_value v;
		assert(!access_value_parse(value, &v, &why));
		access_value_fini(&v);
	} else if (role == TABLE_ROUTES || role == TABLE_SENDER_ROUTES) {
		struct route_value v;
		assert(!route_value_parse(value, &v, &why));
		route_value_fini(&v);
	} else if (role == TABLE_ALIASES) {
		struct conf_list to = {0};
		assert(!alias_value_parse(value, "", &to, &why));
		conf_list_free(&to);
	}
	buf_fini(&why);
}

static void use(struct conf *c, enum table_role role)
{
	struct table_origin origin;
	for (size_t i = 0; i < sizeof address / sizeof *address; i++) {
		char *value = tables_find(c->tables, role, address[i], &origin);
		if (value)
			check_value(role, value);
		free(value);
		char *sender = NULL;
		struct access_value access;
		struct alias_heard heard = {0};
		struct envelope *e = envelope_new();
		addressing_access(c, address[i], &access, &origin);
		access_value_fini(&access);
		bool rewritten = addressing_sender(c, address[i], &sender) == RESPONSE_OK;
		assert(rewritten == (sender != NULL));
		e->sender = sender ? sender : mem_strdup("");
		uint32_t before = e->nrcpt;
		if (addressing_recipient(c, &heard, e, address[i], 0, NULL, NULL) != RESPONSE_OK)
			assert(e->nrcpt == before);
		addressing_copies(c, &heard, e);
		assert(!alias_heard_wanted(&heard)); /* there is no server */
		alias_heard_forget(&heard);
		envelope_free(&e);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf *c;
	struct conf_faults faults = {0};
	if (size < 1)
		return 0;
	if (!c) {
		fuzz_quiet();
		c = conf_defaults();
		tables_unref(c->tables);
		cdb_name = (char *)fuzz_folder_make("table.cdb");
		c->tables = NULL;
	}
	static struct fuzz_file text;
	enum table_role role = (data[0] & 127) % TABLE_ROLES;
	bool cdb = data[0] & 128;
	fuzz_file_write(&text, data + 1, size - 1);
	if (cdb) {
		unlink(cdb_name);
		if (symlink(text.path, cdb_name) != 0)
			abort();
	}
	char *item[] = {cdb ? cdb_name : text.path};
	name_file(c, role, item);
	c->tables = tables_read(c, &(struct conf_lines){0}, &faults);
	assert((c->tables == NULL) == (faults.n > 0));
	if (c->tables)
		use(c, role);
	name_file(c, role, NULL);
	tables_unref(c->tables);
	c->tables = NULL;
	conf_faults_fini(&faults);
	return 0;
}
