/* postfix_settings.h - how Postfix's settings are translated, and why some are not.
 *
 * One row for each that is taken over: its name in main.cf, where it belongs in sluice.conf(5), its
 * name there, and what has to be done to its value. A name that has several rows is tried in their
 * order. Of the rest, what is said of it.
 *
 *	POSTFIX_IMPORT(X)	X(postfix name, section, our name, form, default)
 *		form	text, number, flag, rate, feedback: the value as it stands;
 *			choice: a word of those below; address: one, with myorigin where it has no domain;
 *			yes: a choice that only yes makes, so that the next row may make it;
 *			size: bytes; seconds, hours, days: a time, and its unit where none is given;
 *			list: words; networks, tables, relay, listener: see import_postfix.c
 *		default	what Postfix has where main.cf says nothing, if it is not our default; where it is the value of
 *			another setting that is not there either, nothing
 *
 * SEE        POSTFIX postconf(5).
 */
#ifndef CMD_LOCAL_POSTFIX_SETTINGS_H
#define CMD_LOCAL_POSTFIX_SETTINGS_H

#define POSTFIX_IMPORT(X)                                                                          \
	X("myhostname", GLOBAL, "hostname", text, NULL)                                            \
	X("mynetworks", GLOBAL, "networks", networks, NULL)                                        \
	X("message_size_limit", GLOBAL, "message_size_limit", size, "10240000")                    \
	X("hopcount_limit", GLOBAL, "hopcount_limit", number, NULL)                                \
	X("queue_minfree", GLOBAL, "queue_minfree", size, NULL)                                    \
	X("always_bcc", GLOBAL, "always_bcc", address, NULL)                                       \
	X("canonical_maps", GLOBAL, "canonical", tables, NULL)                                     \
	X("sender_canonical_maps", GLOBAL, "sender_canonical", tables, NULL)                       \
	X("recipient_canonical_maps", GLOBAL, "recipient_canonical", tables, NULL)                 \
	X("sender_bcc_maps", GLOBAL, "sender_bcc", tables, NULL)                                   \
	X("recipient_bcc_maps", GLOBAL, "recipient_bcc", tables, NULL)                             \
	X("masquerade_domains", GLOBAL, "masquerade", list, NULL)                                  \
	X("message_drop_headers", GLOBAL, "drop_headers", list, NULL)                              \
	X("masquerade_exceptions", GLOBAL, "masquerade_exceptions", list, NULL)                    \
	X("maillog_file", GLOBAL, "log", text, "syslog")                                           \
	X("inet_interfaces", LISTENER, "address", listener, "all")                                 \
	X("smtpd_tls_security_level", LISTENER, "tls", choice, NULL)                               \
	X("smtpd_enforce_tls", LISTENER, "tls", yes, NULL)                                         \
	X("smtpd_use_tls", LISTENER, "tls", yes, "no")                                             \
	X("smtpd_tls_cert_file", LISTENER, "certificate", text, NULL)                              \
	X("smtpd_tls_key_file", LISTENER, "key", text, "$smtpd_tls_cert_file")                     \
	X("smtpd_recipient_limit", LISTENER, "recipient_limit", number, NULL)                      \
	X("smtpd_client_connection_count_limit", LISTENER, "client_connection_limit", number,      \
	  "50")                                                                                    \
	X("smtpd_client_connection_rate_limit", LISTENER, "client_rate_limit", rate, NULL)         \
	X("smtpd_hard_error_limit", LISTENER, "error_limit", number, NULL)                         \
	X("smtpd_junk_command_limit", LISTENER, "junk_command_limit", number, NULL)                \
	X("smtpd_timeout", LISTENER, "timeout", seconds, NULL)                                     \
	X("smtp_tls_cert_file", TRANSPORT, "client_certificate", text, NULL)                       \
	X("smtp_tls_key_file", TRANSPORT, "client_key", text, "$smtp_tls_cert_file")               \
	X("smtp_destination_concurrency_limit", TRANSPORT, "destination_concurrency_limit",        \
	  number, NULL)                                                                            \
	X("default_destination_concurrency_limit", TRANSPORT, "destination_concurrency_limit",     \
	  number, NULL)                                                                            \
	X("smtp_initial_destination_concurrency", TRANSPORT, "initial_destination_concurrency",    \
	  number, NULL)                                                                            \
	X("initial_destination_concurrency", TRANSPORT, "initial_destination_concurrency", number, \
	  NULL)                                                                                    \
	X("smtp_destination_concurrency_positive_feedback", TRANSPORT,                             \
	  "destination_concurrency_positive_feedback", feedback, NULL)                             \
	X("default_destination_concurrency_positive_feedback", TRANSPORT,                          \
	  "destination_concurrency_positive_feedback", feedback, NULL)                             \
	X("smtp_destination_concurrency_negative_feedback", TRANSPORT,                             \
	  "destination_concurrency_negative_feedback", feedback, NULL)                             \
	X("default_destination_concurrency_negative_feedback", TRANSPORT,                          \
	  "destination_concurrency_negative_feedback", feedback, NULL)                             \
	X("smtp_destination_concurrency_failed_cohort_limit", TRANSPORT,                           \
	  "destination_concurrency_failed_cohort_limit", number, NULL)                             \
	X("default_destination_concurrency_failed_cohort_limit", TRANSPORT,                        \
	  "destination_concurrency_failed_cohort_limit", number, NULL)                             \
	X("destination_concurrency_feedback_debug", TRANSPORT,                                     \
	  "destination_concurrency_feedback_debug", flag, NULL)                                    \
	X("smtp_destination_recipient_limit", TRANSPORT, "destination_recipient_limit", number,    \
	  NULL)                                                                                    \
	X("default_destination_recipient_limit", TRANSPORT, "destination_recipient_limit", number, \
	  NULL)                                                                                    \
	X("smtp_destination_rate_delay", TRANSPORT, "destination_rate_delay", seconds, NULL)       \
	X("default_destination_rate_delay", TRANSPORT, "destination_rate_delay", seconds, NULL)    \
	X("smtp_delivery_slot_cost", TRANSPORT, "delivery_slot_cost", number, NULL)                \
	X("default_delivery_slot_cost", TRANSPORT, "delivery_slot_cost", number, NULL)             \
	X("default_delivery_slot_discount", TRANSPORT, "delivery_slot_discount", number, NULL)     \
	X("default_delivery_slot_loan", TRANSPORT, "delivery_slot_loan", number, NULL)             \
	X("default_minimum_delivery_slots", TRANSPORT, "minimum_delivery_slots", number, NULL)     \
	X("default_recipient_limit", TRANSPORT, "recipient_limit", number, NULL)                   \
	X("default_extra_recipient_limit", TRANSPORT, "extra_recipient_limit", number, NULL)       \
	X("default_recipient_refill_limit", TRANSPORT, "refill_limit", number, NULL)               \
	X("default_recipient_refill_delay", TRANSPORT, "refill_delay", seconds, NULL)              \
	X("default_process_limit", TRANSPORT, "connection_limit", number, NULL)                    \
	X("smtp_connect_timeout", TRANSPORT, "connect_timeout", seconds, NULL)                     \
	X("smtp_helo_timeout", TRANSPORT, "helo_timeout", seconds, NULL)                           \
	X("smtp_starttls_timeout", TRANSPORT, "starttls_timeout", seconds, NULL)                   \
	X("smtp_mail_timeout", TRANSPORT, "mail_timeout", seconds, NULL)                           \
	X("smtp_rcpt_timeout", TRANSPORT, "rcpt_timeout", seconds, NULL)                           \
	X("smtp_data_init_timeout", TRANSPORT, "data_init_timeout", seconds, NULL)                 \
	X("smtp_data_xfer_timeout", TRANSPORT, "data_block_timeout", seconds, NULL)                \
	X("smtp_data_done_timeout", TRANSPORT, "data_done_timeout", seconds, NULL)                 \
	X("smtp_rset_timeout", TRANSPORT, "rset_timeout", seconds, NULL)                           \
	X("smtp_quit_timeout", TRANSPORT, "quit_timeout", seconds, NULL)                           \
	X("smtp_connection_reuse_time_limit", TRANSPORT, "connection_max_age", seconds, NULL)      \
	X("smtp_tls_security_level", TRANSPORT, "tls", choice, NULL)                               \
	X("smtp_enforce_tls", TRANSPORT, "tls", yes, NULL)                                         \
	X("smtp_use_tls", TRANSPORT, "tls", yes, "no")                                             \
	X("smtp_bind_address", TRANSPORT, "source_address", text, NULL)                            \
	X("smtp_helo_name", TRANSPORT, "helo", text, NULL)                                         \
	X("smtp_fallback_relay", TRANSPORT, "fallback_relay", relay, NULL)                         \
	X("relayhost", ROUTE, "relay", relay, NULL)                                                \
	X("qmgr_message_active_limit", QUEUE, "message_active_limit", number, NULL)                \
	X("qmgr_message_recipient_limit", QUEUE, "message_recipient_limit", number, NULL)          \
	X("qmgr_message_recipient_minimum", QUEUE, "message_recipient_minimum", number, NULL)      \
	X("in_flow_delay", QUEUE, "in_flow_delay", seconds, NULL)                                  \
	X("minimal_backoff_time", QUEUE, "minimal_backoff_time", seconds, NULL)                    \
	X("maximal_backoff_time", QUEUE, "maximal_backoff_time", seconds, NULL)                    \
	X("queue_run_delay", QUEUE, "queue_run_delay", seconds, NULL)                              \
	X("maximal_queue_lifetime", QUEUE, "maximal_queue_lifetime", days, NULL)                   \
	X("bounce_queue_lifetime", QUEUE, "bounce_queue_lifetime", days, NULL)                     \
	X("delay_warning_time", QUEUE, "delay_warning_time", hours, NULL)                          \
	X("bounce_size_limit", QUEUE, "bounce_size_limit", size, NULL)

/* Values that are taken over as another one, and why. */
#define POSTFIX_OTHERWISE(X)                                                                       \
	X("smtp_tls_security_level", "verify", "required",                                         \
	  "Postfix compares with the name of the host, which for MX records comes from the DNS; "  \
	  "verify is here what Postfix calls secure: where relay names a host, set it")            \
	X("smtp_tls_security_level", "fingerprint", "verify",                                      \
	  "mail waits until tls_policy says verify:sha256=HEX of the next hop, or an authority "   \
	  "that ca has vouches for its name")                                                      \
	X("smtp_enforce_tls", "yes", "required",                                                   \
	  "Postfix compares with the name of the host, too: where relay names a host, set verify") \
	X("smtp_use_tls", "yes", "opportunistic", NULL)                                            \
	X("smtp_use_tls", "no", "none", NULL)                                                      \
	X("smtpd_enforce_tls", "yes", "required", NULL)                                            \
	X("smtpd_use_tls", "yes", "optional", NULL)                                                \
	X("smtpd_use_tls", "no", "none", NULL)                                                     \
	X("smtp_tls_security_level", "secure", "verify", NULL)                                     \
	X("smtp_tls_security_level", "encrypt", "required", NULL)                                  \
	X("smtp_tls_security_level", "may", "opportunistic", NULL)                                 \
	X("smtp_tls_security_level", "dane", "dane", NULL)                                         \
	X("smtp_tls_security_level", "dane-only", "dane-only", NULL)                               \
	X("smtp_tls_security_level", "none", "none", NULL)                                         \
	X("smtp_tls_security_level", "", "none", NULL)                                             \
	X("smtpd_tls_security_level", "encrypt", "required", NULL)                                 \
	X("smtpd_tls_security_level", "may", "optional", NULL)                                     \
	X("smtpd_tls_security_level", "none", "none", NULL)                                        \
	X("smtpd_tls_security_level", "", "none", NULL)                                            \
	X("maillog_file", "", "syslog", NULL)                                                      \
	X("maillog_file", "/dev/stdout", "stderr",                                                 \
	  "that is open already, whoever the relay's user is")                                     \
	X("maillog_file", "/dev/stderr", "stderr", NULL)

/* Patterns of names, in this order, and why they are left out. */
#define POSTFIX_LEFT_OUT(X)                                                                        \
	X("smtpd_sasl_path", "see dovecot in the section auth: the path of that socket")           \
	X("smtpd_sasl_type", "see the section auth: users of its own, or those of dovecot")        \
	X("smtpd_sasl_auth_enable", "see auth in the section listener: true, or required")         \
	X("smtpd_sender_login_maps", "see sender_logins: rows of a sender and its logins, with "   \
				     "commas")                                                     \
	X("smtpd_client_message_rate_limit", "see messages in a section limit \"client\"")         \
	X("smtpd_client_recipient_rate_limit", "see recipients in a section limit \"client\"")     \
	X("smtp_sasl_password_maps", "see credentials: rows of a next hop, a login and "           \
				     "password:/FILE; the host must prove its name, or the row "   \
				     "ends with unauthenticated")                                  \
	X("smtp_tls_policy_maps", "see tls_policy: rows of a next hop and a policy; Postfix's "    \
				  "secure is verify")                                              \
	X("relay_clientcerts", "see client_certificates: rows of a SHA-256 fingerprint and a "     \
			       "login")                                                            \
	X("smtp_header_checks", "mail is changed by filters: write a section milter")              \
	X("*_directory", "it says where Postfix is installed")                                     \
	X("*_path", "it says where Postfix is installed")                                          \
	X("setgid_group", "no program here is setgid: see maildrop in sluice(8)")                  \
	X("mail_owner", "see the setting user")                                                    \
	X("compatibility_level", "it is Postfix's own")                                            \
	X("default_database_type", "tables are text or CDB, by their names")                       \
	X("debugger_command", "it is Postfix's own")                                               \
	X("smtpd_banner", "the greeting is always hostname and ESMTP")                             \
	X("mail_name", "the greeting is always hostname and ESMTP")                                \
	X("biff", "sluice delivers to no mailboxes")                                               \
	X("mydestination", "sluice delivers to no mailboxes: mail for these names goes where DNS " \
			   "or a route sends it")                                                  \
	X("mailbox*", "sluice delivers to no mailboxes")                                           \
	X("home_mailbox", "sluice delivers to no mailboxes")                                       \
	X("local_header_rewrite_clients", "see rewrite_header, which is for all mail")             \
	X("local_*", "sluice delivers to no mailboxes")                                            \
	X("virtual_mailbox*", "sluice delivers to no mailboxes")                                   \
	X("virtual_transport",                                                                     \
	  "a transport with protocol = \"lmtp\", and a route to it for each domain")               \
	X("recipient_delimiter", "sluice delivers to no mailboxes")                                \
	X("unknown_local_recipient_reject_code", "sluice delivers to no mailboxes")                \
	X("alias_database", "aliases need no newaliases")                                          \
	X("alias_maps", "see the setting aliases: there both sides are whole addresses")           \
	X("virtual_alias_*", "see the setting aliases: lines have a colon behind the address; a "  \
			     "socketmap may have whole addresses as they are")                     \
	X("transport_maps", "see the settings route and routes, whose values are written "         \
			    "otherwise")                                                           \
	X("sender_dependent_relayhost_maps", "see sender_routes, whose values are written "        \
					     "otherwise")                                          \
	X("sender_dependent_*", "see sender_routes")                                               \
	X("relay_domains", "who may relay is said by networks")                                    \
	X("relay_recipient_maps", "see recipients in the section route: one for each of "          \
				  "relay_domains, with these files, and with relay where mail "    \
				  "does not go by MX")                                             \
	X("smtpd_reject_unlisted_recipient", "see recipients in the section route: others are "    \
					     "always refused")                                     \
	X("address_verify_*", "see verify in the section route, and the section verify")           \
	X("header_checks", "see drop_headers for fields that are to go; else mail is changed and " \
			   "refused by filters: write a section milter")                           \
	X("relay_*", "write a transport section of that name")                                     \
	X("smtp_bind_address6", "see source_address: it takes one of IPv4 and one of IPv6, with "  \
				"a comma")                                                         \
	X("*line_length_limit", "lines are not folded: see line_limit in the section listener")    \
	X("smtp_generic_maps", "see sender_canonical, recipient_canonical and rewrite_header: "    \
			       "all mail goes out by SMTP")                                        \
	X("default_transport", "see the section route \"*\"")                                      \
	X("defer_transports", "see dest suspend and flow suspend in sluice(8): mail waits until "  \
			      "it is resumed")                                                     \
	X("smtpd_restriction_classes", "there are no classes: name the tables themselves")         \
	X("mynetworks_style", "see networks")                                                      \
	X("myorigin", "addresses without a domain get hostname")                                   \
	X("mydomain", "nothing is made of it but what was written here")                           \
	X("append_dot_mydomain", "addresses are not completed")                                    \
	X("inet_protocols", "used for inet_interfaces")                                            \
	X("smtp_sasl_*", "see credentials")                                                        \
	X("smtpd_sasl_*", "see the section auth")                                                  \
	X("smtp_tls_wrappermode", "next hops are spoken to by STARTTLS, not by TLS from the "      \
				  "first byte, as port 465 wants it: name port 587")               \
	X("smtp_tls_chain_files",                                                                  \
	  "see client_certificate and client_key in the section transport")                        \
	X("smtpd_tls_chain_files", "see certificate and key in the section listener")              \
	X("smtpd_tls_ask_ccert", "see client_ca in the section listener")                          \
	X("smtpd_tls_req_ccert", "see client_ca in the section listener")                          \
	X("smtpd_tls_CA*", "see client_ca in the section listener")                                \
	X("anvil_rate_time_unit", "a rate has its unit in itself: client_rate_limit is written "   \
				  "for a minute")                                                  \
	X("smtp_tls_CA*", "see ca in the section tls")                                             \
	X("smtp_tls_*", "see what the manual says of TLS")                                         \
	X("smtpd_tls_*", "see what the manual says of TLS")                                        \
	X("milter_default_action", "see default_action of a section milter: a filter that is "     \
				   "away has clients come later")                                  \
	X("*milter*", "write a section milter \"NAME\" { address } for each filter")               \
	X("*_checks", "mail is changed and refused by filters: write a section milter")            \
	X("content_filter", "filters speak the milter protocol: write a section milter")           \
	X("*_destination_*", "write a transport section of that name")

#endif
