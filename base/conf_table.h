/* conf_table.h - every setting there is, one row each.
 *
 * The struct, the parser, the range checks, `sluice config`, the sample file and sluice.conf(5) are
 * made from these rows; nothing else lists settings.
 *
 *	P(type, name, default, low, high, reload, choices, sentence)
 *
 *	type	flag	  true | false			bool
 *		number	  low..high			int64_t
 *		duration  "500ms 30s 5m 1h 5d"		int64_t, milliseconds
 *		size	  "64k 10m 1g"			int64_t, bytes
 *		text	  a string			char *
 *		list	  { "a", "b" }			struct conf_list
 *		choice	  one of the words in choices	int, counted from 0 (the enums in conf.h)
 *		rate	  "100/s", "0.5/m", "" for none	struct conf_rate
 *		feedback  "1", "0.25", "1/concurrency", "1/sqrt(concurrency)"  struct conf_feedback
 *	reload	RELOAD: takes effect at `sluice reload`; RESTART: at the next start
 */
#ifndef BASE_CONF_TABLE_H
#define BASE_CONF_TABLE_H

#define DAYS(n) ((n)*INT64_C(86400000))
#define HOURS(n) ((n)*INT64_C(3600000))
#define MEGA(n) ((n)*INT64_C(1048576))

#define CONF_GLOBAL(P)                                                                             \
	P(text, hostname, "", 0, 255, RELOAD, "",                                                  \
	  "The name in the greeting, in EHLO, in Received fields and in bounces. Empty: the "      \
	  "machine's own name, which must be that of a host, too.")                                \
	P(text, spool, "/var/spool/sluice", 1, 4000, RESTART, "",                                  \
	  "The folder that holds the queue and the control socket. Created when missing.")         \
	P(text, user, "sluice", 0, 64, RESTART, "",                                                \
	  "The user to become after the listeners are bound. Ignored if not started as root. If the default user does not exist, root stays root, with a warning.")   \
	P(choice, sandbox, "auto", 0, 0, RESTART, "auto|required|off",                             \
	  "Whether the kernel keeps the running relay from opening files that are not its own, from executing programs, and from system calls that it does not need. auto: as far as the kernel can; required: fully, or the relay does not start; off: not at all, and a crash leaves a core.") \
	P(text, log, "stderr", 1, 4000, RELOAD, "",                                                \
	  "Where events are logged: stderr, syslog, syslog:/its/socket, or a file by its absolute path.") \
	P(choice, log_format, "text", 0, 0, RELOAD, "text|json|postfix",                          \
	  "The form of a log line. postfix: lines that pflogsumm and fail2ban filters read.")      \
	P(choice, log_level, "info", 0, 0, RELOAD, "debug|info|warning|error",                     \
	  "Events below this level are not logged.")                                               \
	P(duration, log_slow, "0s", 0, DAYS(1), RELOAD, "",                                        \
	  "A commit of the queue, or a turn of a thread's loop, that takes longer is logged as the event slow, with what it did. 0: none is.") \
	P(number, workers, "0", 0, 256, RESTART, "",                                               \
	  "Threads that serve clients, and as many that deliver. 0: one for each processor.")             \
	P(list, networks, "{\"127.0.0.0/8\", \"::1\"}", 0, 0, RELOAD, "",                          \
	  "Clients in these networks may relay.")                                                  \
	P(text, http, "127.0.0.1:8025", 0, 300, RELOAD, "",                                       \
	  "Address of the status page and the metrics, open to all who can reach it. Empty: none.")                      \
	P(size, message_size_limit, "50m", 0, MEGA(4096), RELOAD, "",                              \
	  "The largest message accepted. 0: no limit.")                                            \
	P(size, content_memory_limit, "128m", 0, MEGA(65536), RELOAD, "",                          \
	  "New messages are kept in memory until their first attempt, together up "                \
	  "to this size; others are read from the queue again. 0: none is. Where the machine, or the cgroup, has less than this and session_memory_limit together, set both lower: the start warns of it.")                           \
	P(size, session_memory_limit, "256m", 0, MEGA(65536), RELOAD, "",                          \
	  "Memory for the recipients and content that clients are sending, for all sessions together. Beyond it new messages and recipients get 452 4.3.1, and content is written to files of the queue at once. 0: no limit.") \
	P(number, descriptor_limit, "0", 0, 100000000, RELOAD, "",                                 \
	  "Descriptors that clients, hosts, the page, commands and files of the queue share; clients and hosts get at most three quarters of them. Beyond it connections get 421 4.3.2 or wait, and large messages get 452 4.3.1. 0: as many as the system allows.") \
	P(number, hopcount_limit, "50", 1, 1000, RELOAD, "",                                       \
	  "A message with this many Received fields is in a loop, and refused.")                    \
	P(size, queue_minfree, "16m", 0, MEGA(1048576), RELOAD, "",                                \
	  "New mail is refused with 452 while the file system of the queue has less free space "   \
	  "than this.")                                                                                 \
	P(size, segment_size, "64m", MEGA(1) / 4, MEGA(1024), RESTART, "",                         \
	  "The size of one segment file of the queue, smaller where the disk has less than four times as much to spare. Up to two that are not needed any more are kept, to be used again.")                                            \
	P(text, postmaster, "", 0, 320, RELOAD, "",                                                \
	  "The address for mail to <postmaster> without a domain, which anybody may send, and for reports that cannot be delivered to the sender. Empty: postmaster at hostname, and such reports are dropped and logged.")                                                                               \
	P(list, aliases, "{}", 0, 0, RELOAD, "",                                                   \
	  "Files of aliases: lines \"address: address, address\", or CDB.")                         \
	P(list, routes, "{}", 0, 0, RELOAD, "",                                                    \
	  "Tables of routes: an address, a domain, a .parent or *, and a transport, relay=HOST,HOST, verify, error DSN TEXT or discard. A route section of the same name comes first.") \
	P(list, providers, "{\"/etc/sluice/providers.conf\"}", 0, 0, RELOAD, "",                   \
	  "Files with sections provider. What a section of the same name says here takes the place of what it says there. The default may be missing.") \
	P(list, sender_routes, "{}", 0, 0, RELOAD, "",                                             \
	  "The same, by the sender: for recipients that only the route * would match. <> is the null sender.") \
	P(list, sender_canonical, "{}", 0, 0, RELOAD, "",                                          \
	  "Tables that rewrite the addresses of senders, to an address or @domain.")    \
	P(list, recipient_canonical, "{}", 0, 0, RELOAD, "", "The same for recipients.")      \
	P(list, canonical, "{}", 0, 0, RELOAD, "",                                                 \
	  "The same for senders and recipients, after the others.")                                \
	P(list, masquerade, "{}", 0, 0, RELOAD, "",                                                \
	  "Domains whose host names are hidden: a sender at host.example.com becomes one at example.com. The first that matches counts; a domain with ! in front is not changed, with all below it.") \
	P(list, masquerade_exceptions, "{}", 0, 0, RELOAD, "",                                     \
	  "Local parts that are not masqueraded, such as root.")                                      \
	P(flag, rewrite_header, "false", 0, 0, RELOAD, "",                                         \
	  "Canonical tables and masquerade change the addresses in the header too: From, Sender and Reply-To as senders, To, Cc and Bcc as recipients. This breaks existing signatures.") \
	P(list, client_access, "{}", 0, 0, RELOAD, "",                                             \
	  "Tables of what to do with mail of a client, by its address, a network, or its name where a proxy has said it: accept, reject CODE TEXT, defer TEXT, hold, discard, flow NAME.") \
	P(list, helo_access, "{}", 0, 0, RELOAD, "",                                               \
	  "The same, by the client's name in EHLO or HELO.")                                       \
	P(list, sender_access, "{}", 0, 0, RELOAD, "",                                             \
	  "The same, by the sender; <> is the null sender.")                                       \
	P(list, recipient_access, "{}", 0, 0, RELOAD, "", "The same for a recipient, and verify.") \
	P(duration, socketmap_timeout, "5s", 10, 60000, RELOAD, "",                                \
	  "How long a server of tables (socketmap:...) has for an answer. After it the client gets 451 4.3.0.") \
	P(duration, socketmap_cache, "30s", 0, HOURS(24), RELOAD, "",                              \
	  "How long its answers are remembered, also that it has none. 0: not at all.")            \
	P(list, xclient, "{}", 0, 0, RELOAD, "",                                                   \
	  "Networks of proxies that may say by XCLIENT who the client is, and whether it has logged in.") \
	P(text, flow_header, "", 0, 76, RELOAD, "",                                                \
	  "The name of a header field that names the flow of a message of who may relay, such as X-Tenant. It is taken out of all mail. Its value is up to 64 letters, digits, dots, lines and underscores; another counts as none, and is logged. Empty: there is none.") \
	P(list, flows, "{}", 0, 0, RELOAD, "",                                                     \
	  "Tables of flows: login:NAME, an address or domain of the sender, a .parent, *, <> or a network of clients, and the name of the flow.") \
	P(list, sender_logins, "{}", 0, 0, RELOAD, "",                                             \
	  "Tables of senders and the logins that may use them, with commas; * is every login. A client that has logged in may then use no other sender, except the null sender.") \
	P(list, limits, "{}", 0, 0, RELOAD, "",                                                    \
	  "Tables of logins and how much each may send: messages in a time, and recipients, as 500/h 2000/h. It holds instead of what the section limit \"login\" says. Its action is that of this section, or defer where there is none.") \
	P(choice, sender_mismatch, "reject", 0, 0, RELOAD, "reject|rewrite|allow",                 \
	  "What to do with another sender in MAIL: refuse it with 553 5.7.1, replace it by the address of the login (with hostname if it has no domain), or allow it.") \
	P(choice, sender_header, "allow", 0, 0, RELOAD, "allow|reject",                            \
	  "What becomes of mail of who has logged in whose header names others as its author: reject: 550 5.7.1, unless sender_logins lets the login use every address in From, and in Sender where that is there.") \
	P(list, client_certificates, "{}", 0, 0, RELOAD, "",                                       \
	  "Tables of SHA-256 fingerprints of certificates, in hexadecimal, and the logins of the clients that have them: on listeners with auth = true, in place of a password.") \
	P(list, dkim_keys, "{}", 0, 0, RELOAD, "",                                                 \
	  "Tables of keys that sign mail of a domain, or of a .parent: SELECTOR FILE, and further ones with commas between them. Of a domain that sections dkim sign for, these count. A key is read when it is first needed.") \
	P(text, dkim_also, "", 0, 255, RELOAD, "",                                                 \
	  "A domain whose keys sign all mail of who may relay, beside those of its author. Empty: none.") \
	P(text, always_bcc, "", 0, 320, RELOAD, "",                                                \
	  "An address that gets a copy of every incoming message. Empty: none.")              \
	P(list, tls_policy, "{}", 0, 0, RELOAD, "",                                                \
	  "Tables of TLS policies: a DOMAIN, a .PARENT, a [NEXT-HOP] or *, and none, opportunistic, required, verify, verify:NAME,NAME, dane or dane-only.") \
	P(list, sender_bcc, "{}", 0, 0, RELOAD, "",                                                \
	  "Tables of senders and the address that gets a copy of what they send.")                 \
	P(list, recipient_bcc, "{}", 0, 0, RELOAD, "",                                             \
	  "Tables of recipients and the address that gets a copy of what they get.")               \
	P(list, drop_headers, "{\"Bcc\", \"Resent-Bcc\", \"Return-Path\", \"Content-Length\"}", 0, 0, RELOAD, "", \
	  "Header fields that are removed from all mail that comes in, by SMTP or by sendmail, before it is filtered and signed. In any case of letters, with all their lines. {}: none.") \
	P(duration, suppress, "0s", 0, DAYS(3650), RELOAD, "",                                     \
	  "How long a recipient that a host does not know (5.1.1 to RCPT) is refused at RCPT, with 550 5.1.1. See sluice suppress. 0: only where a listener or a flow says so; if none does, none is added to those that are known.") \
	P(list, credentials, "{}", 0, 0, RELOAD, "",                                               \
	  "Tables of next hops and the logins for them: NEXT-HOP, optionally a SENDER, LOGIN, and password:FILE, token:FILE or refresh:FILE. Only under TLS, unless clear follows.")

#define CONF_LISTENER(P)                                                                           \
	P(list, address, "{\"127.0.0.1:2525\"}", 0, 0, RELOAD, "",                                 \
	  "Addresses and ports to listen on.")                                                     \
	P(choice, tls, "optional", 0, 0, RELOAD, "none|optional|required|implicit",                \
	  "none: no STARTTLS; optional: offered when there is a certificate; required: no mail "   \
	  "without; implicit: TLS from the first byte.")                                           \
	P(list, certificate, "{}", 0, 0, RELOAD, "",                                               \
	  "PEM files, each with a certificate and its chain. Of several, the name that the client asks for decides; for equal names there can be one for each kind of key. Files that change are read again.") \
	P(list, key, "{}", 0, 0, RELOAD, "",                                                       \
	  "PEM files with the private keys, in the same order.")                                   \
	P(flag, tls_session_tickets, "true", 0, 0, RELOAD, "",                                     \
	  "Let clients resume a TLS session by a ticket, which saves most of the work of a handshake.") \
	P(text, client_ca, "", 0, 4000, RELOAD, "",                                                \
	  "PEM file with the authorities for client certificates. A client with such a certificate is logged in, as its first mail address or else its common name. Empty: none.") \
	P(flag, tls_cbc, "false", 0, 0, RELOAD, "",                                                \
	  "Also allow the TLS 1.2 suites with CBC, for clients that have no better ones.")       \
	P(list, networks, "{}", 0, 0, RELOAD, "",                                                  \
	  "Clients in these networks may relay through this listener. {}: nobody without a login. Not given: the global networks.")                                                                             \
	P(list, proxy_protocol, "{}", 0, 0, RELOAD, "",                                            \
	  "Networks of proxies whose connections begin with a PROXY header (version 1 or 2) that names the client; true: all networks. Other connections are closed. Empty, or false: no proxies.") \
	P(duration, proxy_timeout, "5s", 10, 600000, RELOAD, "",                                   \
	  "The longest time until the PROXY header must have come.")                                          \
	P(number, recipient_limit, "1000", 0, 1000000, RELOAD, "",                                 \
	  "Recipients of one message that comes by SMTP; 452 4.5.3 beyond it. 0: no limit.")                          \
	P(duration, future_release_limit, "30d", 0, DAYS(365), RELOAD, "",                         \
	  "How far ahead clients that may relay or log in can have a message sent, by FUTURERELEASE (HOLDFOR and HOLDUNTIL); 501 5.5.4 beyond it. Below 1s it is not offered.") \
	P(number, client_connection_limit, "100", 0, 100000, RELOAD, "",                           \
	  "Connections at once from one client, an IPv4 address or a /64 of IPv6; 421 4.7.0 beyond it. All of 127.0.0.0/8 is one. Each node of a cluster counts its own. 0: no limit.") \
	P(rate, client_rate_limit, "", 0, 0, RELOAD, "",                                           \
	  "Connections in a time from one client, counted likewise, to all nodes of a cluster together; 421 4.7.0 beyond it.") \
	P(number, connection_limit, "10000", 0, 1000000, RELOAD, "",                               \
	  "Connections at once on this listener; 421 4.3.2 beyond it. 0: no limit.")               \
	P(number, error_limit, "20", 0, 10000, RELOAD, "",                                         \
	  "Refused commands of one session before it is closed with 421. 0: no limit.")            \
	P(number, junk_command_limit, "100", 0, 1000000, RELOAD, "",                               \
	  "NOOP, RSET, VRFY, HELP and EHLO of one session without a message before each further "  \
	  "one counts as an error. 0: no limit.")                                                  \
	P(duration, timeout, "5m", 10, DAYS(1), RELOAD, "",                                        \
	  "How long a client may be silent, and how long it may leave replies unread.")    \
	P(duration, command_timeout, "10m", 10, DAYS(1), RELOAD, "",                               \
	  "The longest time from the first byte of a command to its end.")                         \
	P(duration, message_timeout, "1h", 10, DAYS(7), RELOAD, "",                                \
	  "The longest time that the content of one message may take.")                            \
	P(duration, tls_timeout, "60s", 10, DAYS(1), RELOAD, "",                                   \
	  "The longest time that a TLS handshake may take.")                                       \
	P(number, line_limit, "1000000", 1000, 1000000, RELOAD, "",                                \
	  "Bytes in a line of text, CRLF included, before the message is refused with 550 5.6.0. " \
	  "RFC 5321 says 1000, but programs write HTML as one line, and few hosts refuse it.")     \
	P(choice, bare_newline, "reject", 0, 0, RELOAD, "reject|normalise",                        \
	  "A message with a bare CR or LF is refused, or each of them becomes "                     \
	  "CRLF.")                                                                                 \
	P(flag, chunking, "true", 0, 0, RELOAD, "", "Offer CHUNKING (BDAT).")                      \
	P(flag, add_missing_headers, "false", 0, 0, RELOAD, "",                                    \
	  "Add missing Date, Message-ID and From fields, as for submission. Messages of clients that have logged in always get them.")            \
	P(list, milters, "{ \"*\" }", 0, 0, RELOAD, "",                                            \
	  "Names of milter sections: the filters that all mail through this listener passes, in this order. * is all of them, in the order of their sections; {} is none.") \
	P(choice, auth, "false", 0, 0, RELOAD, "false|true|required",                              \
	  "true: AUTH is offered, and clients that have logged in may relay; required: no mail without, whatever the client's network. See the section auth.") \
	P(flag, received_login, "false", 0, 0, RELOAD, "",                                         \
	  "The Received field also names the login of a client that has logged in, whatever else it says of it.") \
	P(choice, received, "full", 0, 0, RELOAD, "full|login|hidden",                             \
	  "What the Received field says of the client, for all recipients to read. full: its name and address; login: of one that has logged in its login instead; hidden: nothing. Instead of the client hostname is named then. The log always has all of it.") \
	P(duration, suppress, "0s", 0, DAYS(3650), RELOAD, "",                                     \
	  "How long a recipient that a host does not know is refused here, instead of the global setting suppress. 0: as that says.")

#define CONF_TRANSPORT(P)                                                                          \
	P(number, destination_concurrency_limit, "20", 0, 100000, RELOAD, "",                      \
	  "Most connections to one destination. 0: no limit.")                                     \
	P(number, initial_destination_concurrency, "5", 1, 100000, RELOAD, "",                     \
	  "Connections allowed to a new destination. If only a smaller destination_concurrency_limit is set, that.") \
	P(feedback, destination_concurrency_positive_feedback, "1", 0, 0, RELOAD, "",              \
	  "What a successful connection or delivery adds to the window.")                                \
	P(feedback, destination_concurrency_negative_feedback, "1", 0, 0, RELOAD, "",              \
	  "What a failed connection or handshake takes from the window.")                          \
	P(number, destination_concurrency_failed_cohort_limit, "1", 0, 1000, RELOAD, "",           \
	  "Failed pseudo-cohorts after which a destination counts as dead. 0: never. Its hosts are out by then, and are probed one connection at a time, so its mail waits in either case; it is in the state that is shown that dead differs from out.")                    \
	P(number, destination_recipient_limit, "50", 0, 100000, RELOAD, "",                        \
	  "Recipients in one transaction. 0: no limit.")                                           \
	P(choice, destination_by, "site", 0, 0, RELOAD, "site|domain|recipient",                   \
	  "What a destination is: the same hosts in the same order of preference, the domain, or each recipient.") \
	P(flag, destination_concurrency_feedback_debug, "false", 0, 0, RELOAD, "",                 \
	  "Log every step of the window of a destination, as site events.")                        \
	P(duration, destination_rate_delay, "0s", 0, DAYS(1), RELOAD, "",                          \
	  "The pause between the end of a delivery to a destination and the next one; above 0 there is only one connection.") \
	P(rate, destination_rate, "", 0, 0, RELOAD, "",                                            \
	  "Deliveries to one destination in a time, evenly spaced, whatever the concurrency: 100/s, 30/m, 0.5/s.") \
	P(number, delivery_slot_cost, "5", 0, 1000000, RELOAD, "",                                 \
	  "Entries of a message that earn one slot for a smaller message, which then slips past it. 0 or 1: none ever does.") \
	P(number, delivery_slot_discount, "50", 0, 100, RELOAD, "",                                \
	  "The percentage of these slots that may be earned afterwards.")                            \
	P(number, delivery_slot_loan, "3", 0, 1000000, RELOAD, "",                                 \
	  "The number of further slots that may be earned afterwards.")                                    \
	P(number, minimum_delivery_slots, "3", 0, 1000000, RELOAD, "",                             \
	  "A message that can never earn this many slots lets no other message slip past.")        \
	P(number, recipient_limit, "20000", 1, 100000000, RELOAD, "",                              \
	  "Recipients that messages may have in work for this transport beyond message_recipient_minimum each: the oldest that has more to read gets them, then the next.") \
	P(number, extra_recipient_limit, "1000", 0, 100000000, RELOAD, "",                         \
	  "Further recipients for messages that slip past others before all of their recipients are in memory. 0: none.") \
	P(number, refill_limit, "100", 1, 1000000, RELOAD, "",                                     \
	  "More recipients of a message are read when there is room for at least this many.")     \
	P(duration, refill_delay, "5s", 0, DAYS(1), RELOAD, "",                                    \
	  "Fewer recipients are read when this time has passed since the last time.") \
	P(number, connection_limit, "100", 0, 100000, RELOAD, "",                                  \
	  "Most connections of this transport. 0: no limit.")                                      \
	P(number, host_connection_limit, "20", 0, 100000, RELOAD, "",                              \
	  "Most connections to one host. 0: no limit.")                                            \
	P(size, pipeline_bytes, "4m", 0, MEGA(4096), RELOAD, "",                                   \
	  "A connection that carries a message is not given another while the two exceed this "    \
	  "size, and a larger one waits for the replies to its envelope. 0: no limit.")            \
	P(number, pipeline_depth, "16", 1, 1000, RELOAD, "",                                       \
	  "Most messages in flight on one connection to a host that announces PIPELINING and "     \
	  "CHUNKING; without CHUNKING only the next envelope goes with the content. 1: one at "    \
	  "a time.")                                                                               \
	P(duration, connection_idle_timeout, "5s", 0, DAYS(1), RELOAD, "",                         \
	  "A connection without work is closed after this time.")                                  \
	P(duration, connection_max_age, "5m", 0, DAYS(1), RELOAD, "",                              \
	  "A connection is closed at this age, or after its first message if that is later. "      \
	  "0: no limit.")                                                                          \
	P(number, connection_max_messages, "1000", 0, 1000000, RELOAD, "",                         \
	  "A connection is closed after this many messages. 0: no limit.")                         \
	P(duration, connection_attempt_delay, "250ms", 0, HOURS(1), RELOAD, "",                     \
	  "If the TCP handshake with one address takes longer, another address of the same preference is tried as well. 0: never. So it is where a host has taken the connection, and cannot carry mail after backup_attempt_delay.") \
	P(duration, backup_attempt_delay, "5s", 0, HOURS(1), RELOAD, "",                           \
	  "If no address of one preference has answered the TCP handshake within this time, the next preference is tried as well; and so it is where none that has can carry mail after connect_timeout. Mail that would wait longer than this for hosts that are at their limits goes there, too. 0: only when the better hosts have failed.") \
	P(duration, host_backoff_max, "5m", 1, DAYS(1), RELOAD, "",                                \
	  "A host that refuses connections, or does not answer, is tried again after 1 s, then after about twice as long each time, up to this time.") \
	P(duration, site_patience, "10s", 0, HOURS(1), RELOAD, "",                                 \
	  "Mail for a destination that has died stays active this long, unless half of message_active_limit is in use. Then it is deferred, and due when the destination is alive again.") \
	P(flag, pace, "true", 0, 0, RELOAD, "",                                                    \
	  "When a host refuses mail because of its rate or volume, or of us, its destination gets what it was seen to take, a little more as long as nothing is refused, and less when something is. false: such a refusal is that message's.") \
	P(number, pace_retries, "5", 0, 1000, RELOAD, "",                                          \
	  "A message that a host refuses in this way is tried again at the pace so often before it is deferred.") \
	P(duration, connect_timeout, "30s", 1, HOURS(1), RELOAD, "",                               \
	  "Time for the TCP handshake.")                                                           \
	P(duration, greeting_timeout, "300s", 1, HOURS(1), RELOAD, "", "Time for the greeting.")   \
	P(duration, helo_timeout, "300s", 1, HOURS(1), RELOAD, "",                                 \
	  "Time for the reply to EHLO or HELO.")                                                   \
	P(duration, starttls_timeout, "300s", 1, HOURS(1), RELOAD, "",                             \
	  "Time for the reply to STARTTLS and the TLS handshake.")                                 \
	P(duration, mail_timeout, "300s", 1, HOURS(1), RELOAD, "", "Time for the reply to MAIL.")  \
	P(duration, rcpt_timeout, "300s", 1, HOURS(1), RELOAD, "",                                 \
	  "Time for the reply to each RCPT.")                                                      \
	P(duration, data_init_timeout, "120s", 1, HOURS(1), RELOAD, "",                            \
	  "Time for the reply to DATA.")                                                           \
	P(duration, data_block_timeout, "180s", 1, HOURS(1), RELOAD, "",                           \
	  "Time for the peer to take the next piece of content.")                                  \
	P(duration, data_done_timeout, "600s", 1, HOURS(1), RELOAD, "",                            \
	  "Time for the reply to the end of the content.")                                         \
	P(duration, rset_timeout, "20s", 1, HOURS(1), RELOAD, "", "Time for the reply to RSET.")   \
	P(duration, quit_timeout, "10s", 1, HOURS(1), RELOAD, "", "Time for the reply to QUIT.")   \
	P(text, tls, "opportunistic", 1, 4000, RELOAD, "",                                         \
	  "none: never; opportunistic: if offered; required: no mail without TLS; verify, or verify:NAME,NAME: no mail unless the certificate is trusted and has the name of the next hop, or one of these; dane: opportunistic, but hosts with TLSA records must match them; dane-only: no mail for hosts without. Routes and tls_policy can demand more.") \
	P(text, client_certificate, "", 0, 4000, RELOAD, "",                                       \
	  "PEM file with a certificate and its chain, shown to hosts that ask for one.")           \
	P(text, client_key, "", 0, 4000, RELOAD, "", "PEM file with its private key.")             \
	P(flag, convert_8bit, "true", 0, 0, RELOAD, "",                                            \
	  "8-bit content for a host that does not offer 8BITMIME is converted, part by part, to quoted-printable or base64, if its header has MIME-Version, and no signature that this would break. Otherwise it is sent unchanged.") \
	P(choice, greeting_5xx, "defer", 0, 0, RELOAD, "defer|bounce",                             \
	  "A host that greets with 5xx, or answers EHLO and HELO with 5xx, is passed over. If all hosts do so: defer: the mail waits, and is returned when its lifetime ends, as with Postfix; bounce: it is returned at once, as with Exim.") \
	P(choice, protocol, "smtp", 0, 0, RELOAD, "smtp|lmtp",                                      \
	  "The protocol. lmtp (RFC 2033) is for programs that deliver into mailboxes; they reply for each recipient.") \
	P(number, port, "25", 1, 65535, RELOAD, "", "The port of a host that is given without one. With protocol = lmtp the default is 24.") \
	P(text, source_address, "", 0, 128, RELOAD, "",                                            \
	  "The address to connect from: one for IPv4, one for IPv6, or both, separated by a comma. Empty: the system chooses.") \
	P(text, helo, "", 0, 255, RELOAD, "",                                                      \
	  "The name in EHLO, HELO and LHLO to its hosts, or an address literal such as [192.0.2.1]: best the one that the PTR record of source_address has. Empty: hostname.") \
	P(list, sources, "{}", 0, 0, RELOAD, "",                                                   \
	  "Instead of source_address: the names of sources, each with a weight where one is given: \"a\", \"b=3\". Each flow keeps to one of them for a day, as long as the hosts take mail from it. A flow may have others.") \
	P(list, fallback_relay, "{}", 0, 0, RELOAD, "",                                            \
	  "Next hops, written as in a route, for mail whose destination cannot be looked up for now, or has no reachable host.")

#define CONF_ROUTE(P)                                                                              \
	P(text, transport, "smtp", 1, 64, RELOAD, "", "The transport that carries this mail.")     \
	P(list, relay, "{}", 0, 0, RELOAD, "",                                                     \
	  "Next hops in order of preference, \"host\", \"host:port\", \"[host]:port\", or a Unix socket, \"unix:/its/path\". Brackets: no MX look-up. Neighbours with a weight, \"host=3\", share the connections by weight. Empty: the MX hosts of the recipient's domain.") \
	P(list, from, "{}", 0, 0, RELOAD, "",                                                      \
	  "The route applies only to mail from these senders: addresses, domains, .parents, <>. Empty: to all mail.") \
	P(text, tls, "", 0, 4000, RELOAD, "",                                                      \
	  "A TLS policy, as in a transport. The strictest of transport, route and tls_policy applies. Empty: no policy of its own.") \
	P(text, error, "", 0, 500, RELOAD, "",                                                     \
	  "DSN TEXT: such a recipient is refused with this at RCPT, 550 or, if it begins with 4, 450; mail that has one in another way, by an alias, is returned or deferred. Empty: mail is delivered.") \
	P(flag, discard, "false", 0, 0, RELOAD, "", "Such mail is dropped, and logged as sent.") \
	P(flag, verify, "false", 0, 0, RELOAD, "",                                                 \
	  "Ask the next hop about a recipient before it is accepted. See the section verify.")     \
	P(list, recipients, "{}", 0, 0, RELOAD, "",                                                \
	  "Tables of all recipients that there are on this route: lines with an address, or @domain, .parent or * for all in it; what stands behind that is not looked at. Others get 550 5.1.1 at RCPT. Empty: it is not known who there is.")

#define CONF_VERIFY(P)                                                                             \
	P(text, sender, "", 0, 320, RELOAD, "",                                                    \
	  "The sender in MAIL. Empty: the null sender.")                                   \
	P(duration, timeout, "10s", 1, 600000, RELOAD, "",                                         \
	  "How long a client waits for the answer of the next hop.")                            \
	P(choice, unavailable, "accept", 0, 0, RELOAD, "accept|defer",                             \
	  "If the next hop cannot be asked, is too slow, or answers with 4xx, the recipient is accepted, or gets 450 4.1.1.") \
	P(number, concurrency_limit, "10", 1, 1000, RELOAD, "",                                    \
	  "Recipients that are verified at once, at most half of them in one domain. One that has had no answer for two seconds is not counted, as long as no more than 20 times as many are like that; but in its domain it is.")                  \
	P(duration, positive_time, "12h", 0, DAYS(31), RELOAD, "",                                 \
	  "How long it is remembered that a recipient is accepted. 0: not at all.")                   \
	P(duration, negative_time, "10m", 0, DAYS(31), RELOAD, "",                                 \
	  "How long it is remembered that a recipient is refused. 0: not at all.")                         \
	P(number, cache_limit, "100000", 0, 10000000, RELOAD, "",                                  \
	  "Most recipients that are remembered. 0: none is.")

#define CONF_ALIAS(P) P(list, to, "{}", 0, 0, RELOAD, "", "The addresses that the alias stands for.")

#define CONF_LIMIT(P)                                                                              \
	P(rate, messages, "", 0, 0, RELOAD, "",                                                    \
	  "Messages in a time, at once or one after the other. They count at MAIL, whatever filters say of it then; not if sender_logins or a table of access refuses it.") \
	P(rate, recipients, "", 0, 0, RELOAD, "",                                                  \
	  "The same for recipients. They count at RCPT, also if recipient_access, a route, the next hop or a filter refuses them then: so many guesses there may be; not those beyond recipient_limit, or of who may not relay.")                                       \
	P(choice, action, "defer", 0, 0, RELOAD, "defer|reject|hold",                              \
	  "Beyond the limit: defer refuses with 450 4.7.1 and the time until there is room again; reject refuses with 550 5.7.1; hold accepts and holds the message.")

#define CONF_PROVIDER(P)                                                                           \
	P(list, mx, "{}", 0, 0, RELOAD, "",                                                        \
	  "Its mail hosts: .example.com is all that lies in example.com, and mx.example.com that host. Of several that fit the longest counts.") \
	P(number, connection_limit, "0", 0, 1000000, RELOAD, "",                                   \
	  "Most connections to all its hosts together, for all destinations and transports. Each node of a cluster counts its own. 0: no limit.") \
	P(rate, rate, "", 0, 0, RELOAD, "",                                                        \
	  "Most deliveries in a time to all its hosts together, evenly spaced. Each node of a cluster counts its own.")                   \
	P(text, transport, "", 0, 64, RELOAD, "",                                                  \
	  "The transport that carries its mail, chosen when the MX records are known. A transport or relay that a route or a row of routes or sender_routes names goes before it. Empty: the transport stays as it is.")

#define CONF_SOURCE(P)                                                                             \
	P(list, address, "{}", 0, 0, RELOAD, "",                                                   \
	  "The address to connect from: one for IPv4, one for IPv6, or both. Hosts of the other family get nothing from it.") \
	P(text, helo, "", 0, 255, RELOAD, "",                                                      \
	  "The name in EHLO, HELO and LHLO: best the one that the PTR record of the address has. Empty: that of the transport.") \
	P(rate, rate, "", 0, 0, RELOAD, "",                                                        \
	  "Most deliveries in a time from it, to all hosts together, evenly spaced. Each node of a cluster counts its own.")

#define CONF_FLOW(P)                                                                               \
	P(list, sources, "{}", 0, 0, RELOAD, "",                                                   \
	  "The sources of its mail, written as in a transport, whichever that is. Empty: those of the transport.") \
	P(number, weight, "1", 1, 1000, RELOAD, "",                                                \
	  "Where flows wait for the same destination, or for connections of a transport, each gets as much of these as its weight is of the sum of theirs.") \
	P(percent, share, "90%", 1, 100, RELOAD, "",                                                 \
	  "The part of message_active_limit that its messages may come to: none is taken up while it has more for each free place than this leaves to others, so that there is room for the next sender.") \
	P(rate, rate, "", 0, 0, RELOAD, "",                                                        \
	  "Most deliveries in a time, to all destinations together, evenly spaced. Other flows do not wait for it. With Redis it is that of all nodes together.") \
	P(duration, lifetime, "0s", 0, DAYS(100), RELOAD, "",                                      \
	  "A message this old is returned to its sender, and not tried any more, even if maximal_queue_lifetime is longer. 0: only that counts. A shorter one holds for mail that waits for its next attempt from then on.") \
	P(text, transport, "", 0, 64, RELOAD, "",                                                  \
	  "The transport that carries its mail, where the route leads to the transport smtp, whether it says so or not; the relay of the route stays. A provider does not change it. Empty: the transport stays as it is.") \
	P(duration, suppress, "0s", 0, DAYS(3650), RELOAD, "",                                     \
	  "How long a recipient that a host does not know is refused to it, instead of what the listener says. The flow counts that is known at RCPT: without flow_header. 0: as the listener says.")

#define CONF_DKIM(P)                                                                               \
	P(text, selector, "", 0, 63, RELOAD, "",                                                   \
	  "The name of the key: the public key is in the DNS at SELECTOR._domainkey.DOMAIN.") \
	P(text, key, "", 0, 4000, RELOAD, "",                                                      \
	  "The absolute path of a PEM file with the private key, RSA of at least 1024 bits or Ed25519. sluice dkim keygen writes one.") \
	P(list, headers, "{}", 0, 0, RELOAD, "",                                                   \
	  "The header fields that are signed, and once more, so that none can be added; with ? after the name, one can be added. From is always signed. Empty: a list of fields, see Signing.") \
	P(duration, expire, "0s", 0, DAYS(3650), RELOAD, "",                                       \
	  "How long a signature is valid, from when the mail may be sent. 0: for ever.")                                            \
	P(choice, canonicalization, "relaxed/relaxed", 0, 0, RELOAD,                               \
	  "relaxed/relaxed|relaxed/simple|simple/relaxed|simple/simple",                           \
	  "Which changes of header and body on the way leave the signature valid: changes of white space (relaxed), or none (simple).")

#define CONF_ARCHIVE(P)                                                                            \
	P(list, to, "{}", 0, 0, RELOAD, "",                                                        \
	  "Addresses that get a copy of every message that comes in. Empty: none.")                \
	P(list, tables, "{}", 0, 0, RELOAD, "",                                                    \
	  "Tables of whose mail is copied, and to which address: a sender or recipient, a domain, a .parent or *, <> for the null sender, or login:NAME.") \
	P(text, sender, "", 0, 320, RELOAD, "",                                                    \
	  "The sender of copies, in the envelope and in From. Empty: the null sender, and MAILER-DAEMON at our hostname.")

#define CONF_MILTER(P)                                                                             \
	P(text, address, "", 0, 4000, RELOAD, "",                                                  \
	  "Where it listens: inet:HOST:PORT, with an IP address or localhost, or unix:/its/socket.") \
	P(duration, timeout, "30s", 10, HOURS(1), RELOAD, "",                                      \
	  "The longest time for one answer, and for a connection; for the content of a message ten times as long, even if the filter asks for more time.") \
	P(choice, default_action, "tempfail", 0, 0, RELOAD, "tempfail|accept|reject|quarantine",    \
	  "What to do with mail while the filter is down, too slow, or sends something invalid: 451 4.7.1, accept it unfiltered, 550 5.7.1, or accept and hold it.") \
	P(flag, local, "false", 0, 0, RELOAD, "",                                                  \
	  "Mail that sendmail has left in the maildrop passes the filter, too. While the filter fails and default_action is tempfail, it stays there.")

#define CONF_QUEUE(P)                                                                              \
	P(number, message_active_limit, "20000", 1, 10000000, RELOAD, "",                          \
	  "Most messages that the scheduler works on at once. Each is in memory with its whole envelope, about 90 bytes a recipient: 1.8 GB if 20000 of them have 1000 recipients each.")                                    \
	P(number, message_recipient_limit, "20000", 1, 100000000, RELOAD, "",                      \
	  "A message that is taken up begins with as many recipients as others leave of this number, and with message_recipient_minimum at least. What it reads later is bounded by recipient_limit of the transport.") \
	P(number, message_recipient_minimum, "10", 1, 1000000, RELOAD, "",                         \
	  "Recipients that each message may have in work, whatever the other limits.")       \
	P(number, router_concurrency_limit, "1000", 1, 1000000, RELOAD, "",                        \
	  "Next hops that are looked up at once. One that has had no answer for a second is not counted, as long as no more than 20 times as many are like that: domains whose name servers are silent do not hold up others.") \
	P(number, max_message_concurrency, "10", 1, 1000000, RELOAD, "",                           \
	  "Look-ups, and connections, that one message may always have at once.")      \
	P(number, scale_max_concurrency, "10", 0, 1000000, RELOAD, "",                             \
	  "A message may have more while it has fewer than this times the free ones: with 10, one message can have 10 of 11.") \
	P(duration, in_flow_delay, "1s", 0, 10000, RELOAD, "",                                     \
	  "How long a new message is delayed at most before it is stored, while messages of its flow wait since that has its share of message_active_limit. 0: not at all.") \
	P(duration, minimal_backoff_time, "5m", 1, DAYS(30), RELOAD, "",                           \
	  "The shortest time between attempts. Where only the DNS had no answer it is 5 seconds at first, and then as long as the message is old; such mail is also tried when the DNS answers again after it was away.") \
	P(duration, maximal_backoff_time, "4000s", 1, DAYS(30), RELOAD, "",                        \
	  "The longest time between attempts.")                                                    \
	P(text, backoff_jitter, "0.1", 1, 16, RELOAD, "",                                          \
	  "Each time between attempts is lengthened or shortened at random by up to this "         \
	  "fraction, 0 to 0.5.")                                                                   \
	P(duration, queue_run_delay, "5m", 1, DAYS(1), RELOAD, "",                                 \
	  "Deferred messages are tried when they are due. The queue is also scanned at least "     \
	  "this often, so that messages are found that a change of the clock has made due.")               \
	P(duration, maximal_queue_lifetime, "5d", 0, DAYS(36500), RELOAD, "",                       \
	  "A message this old is returned to its sender, also one that waits for its turn behind a rate or a slow host. One whose next attempt is due then waits for it for maximal_backoff_time at most, or for ten seconds while others wait for its place in the active queue. What was this old already when the relay was started has as long again, an hour at most, where no name server or host can be reached. 0: after its first attempt.") \
	P(duration, bounce_queue_lifetime, "5d", 0, DAYS(100), RELOAD, "",                         \
	  "The same for bounces.")                                                                 \
	P(duration, delay_warning_time, "0s", 0, DAYS(100), RELOAD, "",                            \
	  "The age at which the sender is told that a message is delayed, also where it only waits for its turn. 0: never.") \
	P(number, in_doubt_retries, "3", 0, 30, RELOAD, "",                                        \
	  "How often a message is tried again, alone on its connection, after it was sent completely without a final reply, and may have arrived.") \
	P(choice, in_doubt_action, "bounce", 0, 0, RELOAD, "bounce|delivered",                     \
	  "What to do after these attempts. bounce: return it with a text that says so; delivered: count it as delivered.") \
	P(rate, bounce_rate, "6000/m", 0, 0, RELOAD, "",                                           \
	  "Reports in a time, all together. A message that is to be reported beyond it stays in the queue, and is reported later; whoever has failed, or has it, is not tried again. Empty: no limit.") \
	P(rate, bounce_address_rate, "100/m", 0, 0, RELOAD, "",                                    \
	  "The same for reports to one address.")                                                  \
	P(size, bounce_size_limit, "50k", 0, 100 * 1024, RELOAD, "",                               \
	  "Bytes of the original message that are returned in a bounce; above it only its "        \
	  "header. 0: only that, always.")

#define CONF_DNS(P)                                                                                \
	P(list, server, "{}", 0, 0, RELOAD, "",                                                    \
	  "Addresses of name servers, in the order in which they are asked; one that is silent "   \
	  "while another answers goes behind that. 16 at most. Empty: as in resolv.conf.")         \
	P(number, port, "53", 1, 65535, RELOAD, "", "Their port.")                                 \
	P(duration, timeout, "5s", 10, 600000, RELOAD, "", "Time for one answer of one server.")   \
	P(number, tries, "2", 1, 10, RELOAD, "", "Attempts at each server.")                       \
	P(duration, maximal_ttl, "1d", 0, DAYS(7), RELOAD, "",                                     \
	  "No answer is cached longer than this.")                                                   \
	P(duration, negative_ttl, "5m", 0, DAYS(1), RELOAD, "",                                    \
	  "No negative answer is cached longer than this; nor, for 5m at most, that an address could not be had within a second, where the mail has others to go to.")                                \
	P(choice, dnssec, "validate", 0, 0, RELOAD, "validate|trust|off",                          \
	  "validate: check the signatures of all answers, starting from the keys in trust_anchor; mail for bogus destinations waits. If no name server passes on signatures, the log says so once, and nothing is validated. trust: believe the AD bit, if all name servers are on this machine (127.0.0.0/8, ::1). off: no DNSSEC.") \
	P(text, trust_anchor, TRUST_ANCHOR_FILE, 1, 4000, RELOAD, "",                              \
	  "A file with the keys of the root, as DS or DNSKEY records; the default is that of Debian's package dns-root-data. If the default file is missing, nothing is validated.") \
	P(list, insecure_domains, "{}", 0, 0, RELOAD, "",                                          \
	  "Domains that are not validated, with all below them (RFC 7646): internal ones that only the name servers of the organisation know.") \
	P(list, allow_private, "{}", 0, 0, RELOAD, "",                                             \
	  "Private networks (RFC 1918 and the like) in which MX hosts may be. MX hosts in other private networks are not used, since anybody can publish an MX record that leads into your network. An IPv6 address that stands for one of IPv4, as with NAT64 and 6to4, is taken for that. Configured next hops are always used.") \
	P(flag, allow_loopback, "false", 0, 0, RELOAD, "",                                         \
	  "Allow MX hosts with loopback and link-local addresses, for tests.")

#define CONF_AUTH(P)                                                                               \
	P(text, file, "/etc/sluice/users", 0, 4000, RELOAD, "",                                    \
	  "The users' file, as sluice passwd writes it. It is read again when it has changed.")     \
	P(text, dovecot, "", 0, 4000, RELOAD, "",                                                  \
	  "A Dovecot that knows the users instead: the absolute path of its auth socket, or inet:HOST:PORT with an IP address.") \
	P(list, mechanisms, "{\"SCRAM-SHA-256-PLUS\", \"SCRAM-SHA-256\", \"PLAIN\", \"LOGIN\"}", 0, 0, RELOAD, "", \
	  "The mechanisms that are offered, of PLAIN, LOGIN, SCRAM-SHA-1, SCRAM-SHA-1-PLUS, SCRAM-SHA-256, SCRAM-SHA-256-PLUS, OAUTHBEARER and XOAUTH2, as far as possible: the users' file has no OAUTHBEARER and XOAUTH2, Dovecot has what it is configured for, and -PLUS needs TLS.") \
	P(duration, timeout, "10s", 1, HOURS(1), RELOAD, "",                                       \
	  "The longest time for an answer of Dovecot, or for the check of a password. Then the client gets 454 4.7.0.") \
	P(duration, failure_delay, "1s", 0, 60000, RELOAD, "",                                     \
	  "How long the reply to a wrong name or password takes. It is doubled for each recent failure of the same client or login, up to 16 times.") \
	P(number, failure_limit, "3", 0, 100, RELOAD, "",                                          \
	  "Failed logins in one session; the last one closes it with 421 4.7.0. 0: no limit.") \
	P(flag, require_tls, "true", 0, 0, RELOAD, "",                                             \
	  "Offer AUTH only under TLS. Otherwise passwords may cross the network in clear.")

#define CONF_EVENTS(P)                                                                             \
	P(text, to, "", 0, 4000, RELOAD, "",                                                       \
	  "A file by its absolute path, unix:/its/path of a Unix socket, or an http:// or https:// URL to which events are posted. Empty: none.") \
	P(list, only, "{}", 0, 0, RELOAD, "",                                                      \
	  "Which events: of sent, deferred, bounced and in_doubt. Empty: all.")             \
	P(text, token, "", 0, 4000, RELOAD, "",                                                    \
	  "A file whose first line is sent with each request, as Authorization: Bearer. It is read for each request, by the relay's user.") \
	P(number, batch, "500", 1, 100000, RELOAD, "", "Most events in one request.")           \
	P(duration, delay, "1s", 1, 60000, RELOAD, "",                                             \
	  "How long an event waits for others, so that they are sent together.")                              \
	P(duration, timeout, "10s", 10, 600000, RELOAD, "",                                        \
	  "The longest time for a request, or for a socket that does not read.")                    \
	P(duration, backoff_max, "1m", 1, HOURS(1), RELOAD, "",                                    \
	  "A receiver that fails is tried again after 1 s, then after twice as long each time, up to this time.") \
	P(size, buffer, "16m", 4096, MEGA(128), RELOAD, "",                                        \
	  "Memory for events that the receiver has not taken yet. Further events are lost, and counted; mail does not wait.")

#define CONF_CLUSTER(P)                                                                            \
	P(text, name, "", 0, 64, RESTART, "",                                                      \
	  "What this node is called among the others. Empty: its hostname. A queue that was replicated starts under its old name only, unless the node was drained.") \
	P(text, redis, "", 0, 300, RESTART, "",                                                    \
	  "Where Redis or Valkey is, by which nodes tell each other what they know: HOST:PORT, ADDRESS:PORT or unix:/its/socket. Empty: this node is alone.") \
	P(flag, redis_tls, "false", 0, 0, RESTART, "",                                             \
	  "Speak TLS with it. Its certificate must name the HOST or ADDRESS of redis, and be vouched for by redis_ca.") \
	P(text, redis_ca, "/etc/ssl/certs/ca-certificates.crt", 0, 4000, RESTART, "",              \
	  "PEM file, or folder of such files, with the authorities that may vouch for it. It is read at each connection.") \
	P(text, redis_certificate, "", 0, 4000, RESTART, "",                                       \
	  "PEM file with the certificate that we show to it. Empty: none.")                        \
	P(text, redis_key, "", 0, 4000, RESTART, "", "PEM file with its private key.")             \
	P(text, redis_user, "", 0, 200, RESTART, "",                                               \
	  "The user of an access control list as whom we log in. Empty: default.")                 \
	P(text, redis_password, "", 0, 4000, RESTART, "",                                          \
	  "A file whose first line is the password. It is read at each connection, by the relay's user. Empty: we do not log in.") \
	P(number, redis_database, "0", 0, 100000, RESTART, "", "The number of its database.")      \
	P(text, redis_prefix, "sluice:", 1, 100, RESTART, "",                                      \
	  "What the names of all keys and channels begin with. Nodes with the same prefix in the same database are one cluster.") \
	P(duration, redis_timeout, "1s", 10, 1500, RESTART, "",                                   \
	  "How long an answer may take before it counts as away. No mail waits for it.") \
	P(text, nats, "", 0, 1000, RESTART, "",                                                    \
	  "Where NATS servers with JetStream are, to which the queue is replicated, and by which another node can adopt it: HOST:PORT or ADDRESS:PORT of one or several of them, separated by commas. Empty: the queue lies here alone.") \
	P(choice, replicate, "off", 0, 0, RESTART, "off|async|sync",                               \
	  "off: nothing is replicated. async: all that is written to the queue is sent to NATS as well; clients do not wait for that. sync: a client has its 250 when its message is on stable storage here and NATS has it.") \
	P(duration, replicate_timeout, "5s", 10, 600000, RESTART, "",                              \
	  "NATS that has not taken something for so long is away. With sync new mail gets 452 4.3.1 then, until all that it has missed is made up; deliveries go on.") \
	P(duration, adopt_after, "60s", 0, 86400000, RESTART, "",                                  \
	  "A node that has not been heard of for so long is adopted by another one, which works on its queue. It stops taking and delivering mail itself when it could not reach NATS for half of that. 0s: never unasked; then it goes on, however long NATS is away, and may be adopted by order (sluice node adopt) only when it is known to be dead.") \
	P(flag, degrade, "false", 0, 0, RESTART, "",                                               \
	  "With sync: while NATS is away, take mail all the same, on stable storage here alone, as with async.") \
	P(number, nats_replicas, "3", 1, 5, RESTART, "",                                           \
	  "How many servers keep each message; so many there must be. A stream that is there keeps its own number.")                            \
	P(flag, nats_tls, "false", 0, 0, RESTART, "",                                              \
	  "Speak TLS with them. Their certificates must name the HOST or ADDRESS in nats, and be vouched for by nats_ca.") \
	P(text, nats_ca, "/etc/ssl/certs/ca-certificates.crt", 0, 4000, RESTART, "",               \
	  "PEM file with the authorities that may vouch for them. This file, nats_certificate and nats_key are read at each start, and anew where one of them has changed when the connection is lost.") \
	P(text, nats_certificate, "", 0, 4000, RESTART, "",                                        \
	  "PEM file with the certificate that we show to them. Empty: none.")                      \
	P(text, nats_key, "", 0, 4000, RESTART, "", "PEM file with its private key.")              \
	P(text, nats_credentials, "", 0, 4000, RESTART, "",                                        \
	  "A credentials file of NATS, as `nsc` writes it, by which we log in. It is read at each connection, by the relay's user. Empty: we do not log in.")

#define CONF_TLS(P)                                                                                \
	P(text, ca, "/etc/ssl/certs/ca-certificates.crt", 0, 4000, RELOAD, "",                     \
	  "PEM file, or folder of such files, with the authorities that are trusted for verify.") \
	P(choice, minimum, "1.2", 0, 0, RELOAD, "1.2|1.3",                                         \
	  "The lowest version of TLS where TLS is required. Opportunistic TLS always allows 1.2.") \
	P(list, groups, "{}", 0, 0, RELOAD, "",                                                    \
	  "Groups for key exchange, best first, on listeners and towards next hops, by OpenSSL's names. No others are used. Empty: X25519MLKEM768 if OpenSSL has it (3.5), X25519, P-256, P-384.") \
	P(flag, dane, "true", 0, 0, RELOAD, "",                                                    \
	  "Hosts with TLSA records that DNSSEC proves must match them, even if the policy is only opportunistic or required.") \
	P(flag, mta_sts, "true", 0, 0, RELOAD, "",                                                 \
	  "Follow the MTA-STS policies (RFC 8461) of domains to which mail goes by MX records. Without ca there are none.") \
	P(duration, mta_sts_timeout, "60s", 10, 60000, RELOAD, "",                                 \
	  "The longest time for the look-up of a policy: its record, its host, the policy itself. Mail waits for it if no policy is known.") \
	P(duration, mta_sts_interval, "5m", 10, DAYS(1), RELOAD, "",                               \
	  "How long the record of a domain, or a failure to fetch its policy, is remembered. A reload forgets failures.") \
	P(number, mta_sts_port, "443", 1, 65535, RELOAD, "",                                       \
	  "The TCP port from which policies are fetched. Other values than 443 are for tests.")

#define CONF_TLS_REPORT(P)                                                                         \
	P(flag, enabled, "false", 0, 0, RELOAD, "",                                                \
	  "Count the results of TLS to other domains, and report them once a day to domains with a _smtp._tls record.") \
	P(text, from, "", 0, 320, RELOAD, "",                                                      \
	  "The sender of the reports. Empty: postmaster at hostname.") \
	P(text, organization, "", 0, 255, RELOAD, "",                                              \
	  "The name of the organisation that sends the reports. Empty: hostname.")                                           \
	P(text, contact, "", 0, 320, RELOAD, "",                                                   \
	  "The contact address in the reports. Empty: the address of from.")

#endif
