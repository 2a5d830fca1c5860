/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/constraint.h"

#include <assert.h>

/* Strategies of POSTFIX QSHAPE_README, by what holds the mail back. */
#define ADVICE_DOWN "the destination is down: sluice dest suspend, or a transport of its own"
#define ADVICE_RATE                                                                                \
	"its rate is limited here: destination_rate, destination_rate_delay, or a transport of "   \
	"its own"
#define ADVICE_TRANSPORT                                                                           \
	"the transport has all its connections: a larger connection_limit, or a transport of its " \
	"own for slow destinations"

static const struct constraint_row rows[] = {
	[CONSTRAINT_REPORTING] = {.name = "reporting",
				  .why = "the report to its sender is being stored",
				  .relief = "the disk: as soon as it is synced"},
	[CONSTRAINT_CANCELLED] = {.name = "cancelled",
				  .why = "the operator wants it, and a delivery is under way",
				  .relief = "the end of that delivery"},
	[CONSTRAINT_MEMORY] =
		{.name = "memory",
		 .counts = "recipient",
		 .why = "not read into memory yet, for there is no room for more recipients",
		 .relief = "deliveries that end; message_recipient_limit, recipient_limit"},
	[CONSTRAINT_LOOKUP] =
		{.name = "lookup",
		 .counts = "look-up",
		 .why = "waits for its turn to look up the next hop",
		 .relief = "look-ups that end; router_concurrency_limit, max_message_concurrency"},
	[CONSTRAINT_DNS] =
		{.name = "dns",
		 .why = "waits for the answer of DNS, or for the domain's MTA-STS policy",
		 .relief = "that answer, or its time-out"},
	[CONSTRAINT_SENDING] = {.name = "sending",
				.why = "is being sent",
				.relief = "the reply of the host, or a time-out"},
	[CONSTRAINT_CONNECTING] = {.name = "connecting",
				   .why = "waits for a connection that is being opened",
				   .relief = "that connection, as soon as it is ready"},
	[CONSTRAINT_SUSPENDED] = {.name = "suspended",
				  .why = "the operator has suspended it",
				  .relief = "sluice dest resume, or the time that was said",
				  .advice = "the operator has suspended it: sluice dest resume"},
	[CONSTRAINT_DEAD] =
		{.name = "dead",
		 .why = "the site is dead, for it has failed too often",
		 .relief = "the answer of one of its hosts, which are tried from time to time; "
			   "sluice queue flush",
		 .advice = ADVICE_DOWN,
		 .cites = true},
	[CONSTRAINT_OUT] =
		{.name = "out",
		 .why = "all hosts of the site are out",
		 .relief = "the answer of one of them, which are tried from time to time; sluice "
			   "queue flush",
		 .advice = ADVICE_DOWN,
		 .cites = true},
	[CONSTRAINT_PACE] =
		{.name = "pace",
		 .why = "its hosts let no more through: %p",
		 .relief = "that time; what they take, which lets the pace grow; sluice dest reset",
		 .advice =
			 "its hosts let no more through: sluice explain says in which words; fewer "
			 "messages, or another address, helps",
		 .cites = true},
	[CONSTRAINT_RATE] = {.name = "rate",
			     .why = "destination_rate: the next delivery is not due",
			     .relief = "that time",
			     .advice = ADVICE_RATE},
	[CONSTRAINT_RATE_DELAY] =
		{.name = "rate_delay",
		 .counts = "connection",
		 .why = "destination_rate_delay: one delivery at a time, and a pause after it",
		 .relief = "the end of the one before, and of the pause",
		 .advice = ADVICE_RATE},
	[CONSTRAINT_PROVIDER_RATE] =
		{.name = "provider_rate",
		 .why = "the rate of its provider: the next delivery to any of "
			"its hosts is not due",
		 .relief = "that time, and its turn among the others",
		 .advice = "the rate of its provider is limited here: rate, in "
			   "the section provider"},
	[CONSTRAINT_SOURCE_RATE] =
		{.name = "source_rate",
		 .why = "the rate of its source: the next delivery from there is not due",
		 .relief = "that time, and its turn among the others",
		 .advice = "the rate of its source is limited here: rate, in the section source; "
			   "or another source"},
	[CONSTRAINT_FLOW_RATE] =
		{.name = "flow_rate",
		 .why = "the rate of its flow: the next delivery to any destination is not due",
		 .relief = "that time, and its turn among the others of the flow",
		 .advice = "the rate of its flow is limited here: rate, in the section flow"},
	[CONSTRAINT_WINDOW] =
		{.name = "window",
		 .counts = "connection",
		 .why = "its window of %s is full",
		 .relief = "deliveries that end; successes, which widen the window up to "
			   "destination_concurrency_limit",
		 .advice = "its window is full: if the destination takes more, a larger "
			   "destination_concurrency_limit; else a transport of its own"},
	[CONSTRAINT_SHARE] =
		{.name = "share",
		 .counts = "connection",
		 .why = "its message has its share of connections",
		 .relief = "places on the connections of others; max_message_concurrency, "
			   "scale_max_concurrency",
		 .in_turn = true},
	[CONSTRAINT_SILENT] =
		{.name = "silent",
		 .counts = "connection",
		 .why = "its hosts have never answered, and %s to them %a being tried",
		 .relief = "their answer, or a time-out",
		 .advice = ADVICE_DOWN},
	[CONSTRAINT_PROVIDER_CONNECTION_LIMIT] =
		{.name = "provider_connection_limit",
		 .counts = "connection",
		 .why = "all hosts of its provider together have what they may have: %s",
		 .relief = "connections that end; connection_limit of the provider",
		 .advice = "a limit of ours holds it back: a larger connection_limit in the "
			   "section provider"},
	[CONSTRAINT_CONNECTION_LIMIT] = {.name = "connection_limit",
					 .counts = "connection",
					 .why = "the transport has all that it may have: %s",
					 .relief = "connections that end; connection_limit",
					 .advice = ADVICE_TRANSPORT,
					 .in_turn = true},
	[CONSTRAINT_UNREADY_LIMIT] =
		{.name = "unready_limit",
		 .counts = "connection",
		 .why = "%s of the transport %a being opened at once",
		 .relief = "those that become ready, or are silent; connection_limit",
		 .advice = ADVICE_TRANSPORT,
		 .in_turn = true},
	[CONSTRAINT_HOST_CONNECTION_LIMIT] =
		{.name = "host_connection_limit",
		 .counts = "connection",
		 .why = "each host in service has all that it may have: %s",
		 .relief = "connections that end; host_connection_limit",
		 .advice = "a limit of ours holds it back: a larger host_connection_limit",
		 .in_turn = true},
	[CONSTRAINT_HOST_PAUSE] =
		{.name = "host_pause",
		 .counts = "connection",
		 .why = "its hosts have as many connections as they were seen to take",
		 .relief = "places on these; that time, when one more is tried",
		 .advice =
			 "its hosts take no more connections: a transport of its own keeps it from "
			 "holding up others",
		 .in_turn = true,
		 .cites = true},
	[CONSTRAINT_ORDER] = {.name = "order",
			      .why = "others come first",
			      .relief = "their deliveries",
			      .in_turn = true},
	[CONSTRAINT_IDLE] = {.name = "idle", .why = "nothing waits", .relief = "mail for it"},
};

const struct constraint_row *constraint_row(enum constraint c)
{
	static_assert(sizeof rows / sizeof rows[0] == CONSTRAINT_COUNT, "a row each");
	assert(c < CONSTRAINT_COUNT && rows[c].name);
	return &rows[c];
}

const char *constraint_name(enum constraint c)
{
	return constraint_row(c)->name;
}
