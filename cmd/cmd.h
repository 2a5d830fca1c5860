/* cmd.h - the front page of cmd/: the program's subcommands, and the wiring of the relay.
 *
 *	sluice WORD ... --> [ main: a table ] --> one file a subcommand
 *
 *	serve     [ server ]----- makes, starts, reloads, stops: spool, dns, smtpc, qmgr, smtpd
 *	             |  ^
 *	             v  | requests            SPOOL/control
 *	          [ control ] <--------------------------- [ client ] <-- queue stats reload stop
 *
 *	main.c            the table; the names sendmail, mailq and newaliases
 *	options.c         options that every subcommand has; how they say what is wrong
 *
 * Rooms, each above those that it names:
 *
 *	text/             how messages, sites, hosts, logins, filters, counts and times are written, as lines
 *	                  and as JSON (*_print), and the words of orders, which both sides of the
 *	                  control socket read (*_args, queue_filter, queue_sites)
 *	confine/          what the process may do: becoming another user (privileges), giving up rights
 *	                  (sandbox), the files that it still needs (sandbox_paths, own_program), and the means
 *	                  (landlock, syscalls, syscall_table)
 *	watch/            files beside the queue and the configuration: certificates and tables are read
 *	                  again when they change; what was learnt about hosts (kept_file, kept_text); the clock;
 *	                  whether filters answer, and the disk
 *	maildrop/         mail from this machine: sluice sendmail and its options, what it reads
 *	                  (message_text), handing it over by SMTP (submit) or leaving it in a folder
 *	                  (maildrop_leave), from which the relay takes it (maildrop, _folder, _take), as
 *	                  tables of access have it (_access)
 *	control/          the relay's side of SPOOL/control, and a job for each order that is under way;
 *	                  glance: the scheduler as it looks, once a second at most. On text, maildrop
 *	http/             /metrics, /api/ and the status page: see http.h. On control
 *	relay/            sluice serve: the parts in the order in which they start and stop (server),
 *	                  what is changed meanwhile (server_reload), how it ends (ending), the successor
 *	                  (handover), which is tried first (trial), what it replies (requests).
 *	                  On all above
 *	logs/             the log read again: log_pass is its front page. On text
 *	operator/         subcommands that ask a relay: client is their side of the socket; offline does
 *	                  the same while no relay is running; trace, report. On control, confine, logs, watch
 *	local/            subcommands that need no relay: check, config, dkim, import-postfix, login,
 *	                  passwd, route, sim, tls. On text, watch; check on operator, for what a relay
 *	                  that happens to run says
 *	sink/             sluice sink
 *
 * THREAD     Main, which has a loop of its own in serve and in sink.
 * ERRORS     Exit statuses: done 0, refused or not found 1, usage 2, relay out of reach 75.
 */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#define SLUICE_VERSION "0.1"

enum { STATUS_DONE = 0, STATUS_REFUSED = 1, STATUS_USAGE = 2, STATUS_UNREACHABLE = 75 };

/* Each takes its own name as argv[0], and returns the exit status. */
int cmd_serve(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_sendmail(int argc, char **argv);
int cmd_newaliases(int argc, char **argv);
int cmd_queue(int argc, char **argv);
int cmd_mailq(int argc, char **argv);
int cmd_route(int argc, char **argv);
int cmd_tls(int argc, char **argv);
int cmd_dkim(int argc, char **argv);
int cmd_dest(int argc, char **argv);
int cmd_node(int argc, char **argv);
int cmd_user(int argc, char **argv);
int cmd_milter(int argc, char **argv);
int cmd_flow(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_suppress(int argc, char **argv);
int cmd_login(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_shape(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_reload(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_restart(int argc, char **argv);
int cmd_import_postfix(int argc, char **argv);
int cmd_sink(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_passwd(int argc, char **argv);

#endif
