/* SPDX-License-Identifier: ISC */
#include "cmd/local/postfix_restrictions.h"

#include "base/address_pattern.h"
#include "base/conf_value.h"
#include "base/mem.h"
#include "cmd/local/postfix_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum meaning {
	ALWAYS,	 /* nothing need be written */
	TABLE,	 /* of the kind that is named */
	PERMIT,	 /* own clients go no further there; here they do */
	OF_NEXT, /* a word about the restriction behind it */
	NOTE,
};

#define LAST                                                                                       \
	"whoever has come so far is refused there: see auth = required, and networks, in the "     \
	"section listener"

/* Patterns, in this order. */
struct known {
	const char *pattern;
	enum meaning meaning;
	enum restricted kind; /* of TABLE */
	bool argument;
	const char *note;
};

static const struct known known[] = {
	{"check_client_access", TABLE, RESTRICTED_CLIENT, true, NULL},
	{"check_helo_access", TABLE, RESTRICTED_HELO, true, NULL},
	{"check_sender_access", TABLE, RESTRICTED_SENDER, true, NULL},
	{"check_recipient_access", TABLE, RESTRICTED_RECIPIENT, true, NULL},
	{"permit_mynetworks", PERMIT, 0, false, NULL},
	{"permit_sasl_authenticated", PERMIT, 0, false, NULL},
	{"permit_tls_clientcerts", PERMIT, 0, false, NULL},
	{"permit", ALWAYS, 0, false, NULL},
	{"permit_auth_destination", NOTE, 0, false,
	 "mail from strangers is taken for nobody: who may relay is said by networks and logins"},
	{"reject_unauth_destination", ALWAYS, 0, false, NULL},
	{"defer_unauth_destination", ALWAYS, 0, false, NULL},
	{"reject_non_fqdn_sender", ALWAYS, 0, false, NULL},
	{"reject_non_fqdn_recipient", ALWAYS, 0, false, NULL},
	{"reject_invalid_helo_hostname", ALWAYS, 0, false, NULL},
	{"reject_unauth_pipelining", ALWAYS, 0, false, NULL},
	{"reject_unlisted_recipient", NOTE, 0, false, "see recipients in the section route"},
	{"reject_unknown_recipient_domain", NOTE, 0, false,
	 "domains that the DNS cache knows to be gone are refused, and no name is looked up for "
	 "it"},
	{"reject_unverified_recipient", NOTE, 0, false,
	 "write verify = true in the section route, or rows with verify in recipient_access"},
	{"reject_*sender_login_mismatch", NOTE, 0, false, "see sender_logins"},
	{"reject_known_sender_login_mismatch", NOTE, 0, false, "see sender_logins"},
	{"reject_rbl_client", NOTE, 0, true, "a filter asks blocklists: write a section milter"},
	{"reject_rhsbl_*", NOTE, 0, true, "a filter asks blocklists: write a section milter"},
	{"permit_dnswl_client", NOTE, 0, true, "a filter asks such lists: write a section milter"},
	{"permit_rhswl_client", NOTE, 0, true, "a filter asks such lists: write a section milter"},
	{"check_policy_service", NOTE, 0, true, "a filter decides: write a section milter"},
	{"check_*_access", NOTE, 0, true, "there is no such table: see client_access"},
	{"warn_if_reject", OF_NEXT, 0, false,
	 "nothing is only warned of: left out with what follows"},
	{"defer_if_permit", NOTE, 0, false, "see defer in the tables of access"},
	{"defer_if_reject", NOTE, 0, false, "see defer in the tables of access"},
	{"reject", NOTE, 0, false, LAST},
	{"defer", NOTE, 0, false, LAST},
	{"sleep", NOTE, 0, true, "nobody is made to wait"},
};

static const struct known unknown = {
	.meaning = NOTE, .note = "there is no such restriction here, or it is a class of them"};

/* In the order in which Postfix looks at them. */
static const char *const lists[] = {
	"smtpd_client_restrictions",	  "smtpd_helo_restrictions",
	"smtpd_sender_restrictions",	  "smtpd_relay_restrictions",
	"smtpd_recipient_restrictions",	  "smtpd_data_restrictions",
	"smtpd_end_of_data_restrictions", "smtpd_etrn_restrictions",
};

struct reading {
	struct postfix_restrictions *to;
	const struct postfix_setting *setting;
	void (*tell)(void *context, const struct postfix_setting *, const char *restriction,
		     const char *text);
	void *context;
	bool permitted; /* own networks or logins, further in front */
	bool only_warned;
};

const char *postfix_restrictions_setting(enum restricted kind)
{
	static const char *const names[] = {[RESTRICTED_CLIENT] = "client_access",
					    [RESTRICTED_HELO] = "helo_access",
					    [RESTRICTED_SENDER] = "sender_access",
					    [RESTRICTED_RECIPIENT] = "recipient_access"};
	assert((size_t)kind < sizeof names / sizeof *names);
	return names[kind];
}

/* The next word, or all that stands in braces; it is cut off there. NULL: none. */
static char *next_word(char **at)
{
	char *word = *at + strspn(*at, " \t,");
	if (*word == '\0')
		return NULL;
	bool braced = *word == '{';
	word += braced;
	size_t len = strcspn(word, braced ? "}" : " \t,");
	*at = word + len + (word[len] != '\0');
	word[len] = '\0';
	return word;
}

static const struct known *find_known(const char *word)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (address_pattern_fits_domain(known[i].pattern, word))
			return &known[i];
	return &unknown;
}

static void tell_note(const struct reading *r, const char *word, const char *text)
{
	r->tell(r->context, r->setting, word, text);
}

static void add_table(struct reading *r, enum restricted kind, const char *table)
{
	if (!conf_list_has(&r->to->access[kind], table))
		conf_list_add(&r->to->access[kind], table);
}

/* Of networks, as client_access has them; it has no order. False: it is none such. */
static bool take_networks(struct reading *r, enum restricted kind, const char *whole,
			  const char *argument)
{
	argument = postfix_table_behind_proxy(argument);
	if (kind != RESTRICTED_CLIENT || strncmp(argument, "cidr:/", 6) != 0)
		return false;
	add_table(r, kind, argument + 5);
	tell_note(r, whole,
		  "the smallest network counts here, not the first row; there is no if, nor !");
	return true;
}

static void take_table(struct reading *r, const struct known *k, const char *whole,
		       const char *argument)
{
	struct conf_list one = {0};
	struct buf why = {0};
	bool good = take_networks(r, k->kind, whole, argument) ||
		    postfix_table_add(argument, true, &one, &why);
	if (one.n > 0)
		add_table(r, k->kind, one.item[0]);
	if (!good)
		tell_note(r, whole, buf_cstr(&why));
	else if (r->permitted)
		tell_note(r, whole, "here it counts for own networks and logins, too");
	conf_list_free(&one);
	buf_fini(&why);
}

static void take_restriction(struct reading *r, const struct known *k, const char *whole,
			     const char *argument)
{
	if (k->meaning == TABLE)
		take_table(r, k, whole, argument);
	else if (k->meaning == NOTE || k->meaning == OF_NEXT)
		tell_note(r, whole, k->note);
	r->permitted |= k->meaning == PERMIT;
}

static void take_next(struct reading *r, char *word, char **at)
{
	const struct known *k = find_known(word);
	const char *argument = k->argument ? next_word(at) : NULL;
	if (k->argument && !argument) {
		tell_note(r, word, "there is nothing behind it");
		return;
	}
	char *whole = mem_printf("%s%s%s", word, argument ? " " : "", argument ? argument : "");
	if (!r->only_warned)
		take_restriction(r, k, whole, argument);
	r->only_warned = k->meaning == OF_NEXT;
	free(whole);
}

/* "{ check_policy_service inet:..., timeout = 10s }" is one restriction, and what it may take. */
static void take_braced(struct reading *r, char *text)
{
	char *word = next_word(&text);
	if (word)
		take_next(r, word, &text);
}

static void read_list(struct reading *r, char *at)
{
	while (*(at += strspn(at, " \t,"))) {
		bool braced = *at == '{';
		char *word = next_word(&at);
		if (braced)
			take_braced(r, word);
		else
			take_next(r, word, &at);
	}
}

void postfix_restrictions_read(const struct postfix_conf *from, struct postfix_restrictions *to,
			       void (*told)(void *context, const struct postfix_setting *,
					    const char *restriction, const char *text),
			       void *context)
{
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		struct postfix_setting *s = postfix_conf_find(from, lists[i]);
		struct reading r = {.to = to, .setting = s, .tell = told, .context = context};
		struct buf value = {0};
		if (!s)
			continue;
		s->taken = true;
		if (postfix_conf_expand(from, s->value, &value)) {
			char *copy = mem_strdup(buf_cstr(&value));
			read_list(&r, copy);
			free(copy);
		} else {
			told(context, s, s->value, "it is an expression: write its value");
		}
		buf_fini(&value);
	}
}
