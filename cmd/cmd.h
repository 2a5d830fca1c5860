/* cmd.h - the front page of cmd/: the program's subcommands, and the wiring of the relay.
 *
 *	sluice WORD ... --> [ main: a table ] --> one file a subcommand
 *
 *	serve     [ server ]----- makes, starts, reloads, stops: spool, dns, smtpc, qmgr, smtpd
 *	             |  ^
 *	             v  | requests            SPOOL/control
 *	          [ control ] <--------------------------- [ client ] <-- queue stats reload stop
 *
 *	main.c              the table; the names sendmail, mailq and newaliases
 *	options.c           options that every subcommand has; how they say what is wrong
 *	serve.c             sluice serve: signals and the main loop
 *	server.c            the parts of the relay, in the order in which they start and stop
 *	ending.c            how it ends: at once, drained, or for its successor; handover.c: giving
 *	                    that one the sockets
 *	requests.c          what the relay answers to stats, reload, stop, restart, queue, dest,
 *	                    shape, explain, user, verify
 *	privileges.c        becoming another user
 *	sandbox.c           giving up what is not needed; sandbox_paths.c: which files are,
 *	                    landlock.c: the others; syscalls.c, syscall_table.h: system calls
 *	control.c           the control socket, on the relay's side; control_wire.h: the bytes on it
 *	control_path.c      where that socket is
 *	client.c            the control socket, on the operator's side
 *	offline.c           orders on the queue of a relay that does not run
 *	queue.c             sluice queue, mailq
 *	queue_args.c        its words, to a verb and a filter; both sides read them
 *	queue_filter.c      which messages are meant; queue_sites.c: those that go to a site
 *	queue_job.c         one such order under way in the relay
 *	queue_show.c        the part of it that sends a whole message
 *	queue_print.c       a message as a line, as JSON, and in full
 *	queue_check.c       sluice queue check, which needs no relay
 *	route_command.c     sluice route; route_trace.c: what would happen, route_print.c: as text
 *	clock_watch.c       what becomes of the queue when the clock is set: nothing
 *	tls_command.c       sluice tls; tls_probe.c: a handshake with one host, tls_print.c: as text
 *	certificate_watch.c certificates read anew when their files change, and how old they are
 *	table_watch.c       tables read anew when their files change
 *	top.c               sluice top; top_look.c: what is asked for, top_screen.c: how it looks
 *	stats.c, reload.c, stop.c, restart.c, config.c
 *	stats_job.c         one `sluice stats` under way in the relay; stats_print.c: its text
 *	glance.c            the scheduler as it looks, for stats and HTTP, once a second at most
 *	http.c              HTTP: see http.h, which names its files
 *	check.c             sluice check; check_warnings.c: what is allowed and dangerous
 *	dest.c              sluice dest; dest_args.c: its words, which both sides read
 *	dest_job.c          one such order under way in the relay
 *	dest_print.c        sites and hosts as lines, as JSON, and in full
 *	user.c              sluice user; user_args.c: its words, which both sides read
 *	user_job.c          one such order under way in the relay; user_print.c: logins as text
 *	verify_client.c     sluice verify; verify_job.c: one such question under way in the relay
 *	kept_file.c         what was learnt about hosts, and suspended logins, in the folder of the
 *	                    queue
 *	shape_client.c      sluice shape; shape_args.c: its words, which both sides read
 *	shape_job.c         one such question under way in the relay; shape_print.c: the table
 *	explain_client.c    sluice explain
 *	explain_job.c       one such question under way; explain_print.c: as sentence and JSON
 *	dkim_command.c      sluice dkim; dkim_look.c: its check
 *	report_passage.c    reports on their way to the spool, signed
 *	sendmail.c          sluice sendmail
 *	sendmail_options.c  its options
 *	message_text.c      what it reads: header, body, what is missing in it
 *	submit.c            handing it to the relay by SMTP; submit_talk.c: commands and replies
 *	maildrop_leave.c    leaving it for a relay that can't be reached
 *	maildrop.c          taking what was left; maildrop_folder.c: the folders it goes through,
 *	                    maildrop_take.c: one file, maildrop_form.c: what is in it,
 *	                    maildrop_count.c: who it is for, for shape
 *	queue_habits.c      sendmail -q and its like; sendmail_session.c: sendmail -bs
 *	import_postfix.c    sluice import-postfix; postfix_conf.c: main.cf, postfix_settings.h: what
 *	                    of it is ours
 *	sink.c              sluice sink; sink_options.c, sink_server.c, sink_session.c,
 *	                    sink_command.c, sink_data.c, sink_store.c
 *	sim.c               sluice sim; see sim/sim.h
 *	passwd.c            sluice passwd; users_file.c: writing that file
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
int cmd_user(int argc, char **argv);
int cmd_verify(int argc, char **argv);
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
