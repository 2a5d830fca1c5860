/* metrics.h - what is counted.
 *
 *	metrics_add(METRIC_x, n)           a counter or gauge, one row of METRICS
 *	metrics_observe(HISTOGRAM_x, v)    how often which size was seen, one row of HISTOGRAMS
 *	metric_cell_add(cell, n)           a counter whose labels come up at run time: FAMILIES
 *
 * Each thread has its own set of the first two, which only it writes; a reader adds them up. Cells
 * are shared, and added to atomically; they are for what costs more than that anyway. How all of it
 * is printed: metrics_print.h.
 *
 * OWNERSHIP  Sets and cells are made at first use and stay to the end of the program.
 * THREAD     Any, without waiting.
 * ERRORS     A family takes METRIC_CELLS_MAX cells; what comes up later counts as "other".
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdint.h>

/* M(name, Prometheus name with labels, sentence); rows of one family stand together. NULL: it is not
 * printed. */
#define METRICS(M)                                                                                 \
	M(received, "messages_received_total", "Messages accepted")                                \
	M(in_doubt, "in_doubt_total", "Recipients whose final reply never came")                   \
	M(pace_refusals, "pace_refusals_total",                                                    \
	  "Transactions that hosts refused for their rate or volume, or for us")                   \
	M(bounces, "bounces_total", "Bounces and delay warnings written")                          \
	M(server_handshake, "connections{side=\"server\",state=\"handshake\"}",                    \
	  "Connections open, of clients and to next hops")                                         \
	M(server_idle, "connections{side=\"server\",state=\"idle\"}", "")                          \
	M(server_transaction, "connections{side=\"server\",state=\"transaction\"}", "")            \
	M(client_connecting, "connections{side=\"client\",state=\"connecting\"}", "")              \
	M(client_idle, "connections{side=\"client\",state=\"idle\"}", "")                          \
	M(client_busy, "connections{side=\"client\",state=\"busy\"}", "")                          \
	M(server_connections, NULL, "") /* those of the server, in one number */                   \
	M(server_connected, "connections_total{side=\"server\"}",                                  \
	  "Connections begun, by clients and to next hops")                                        \
	M(client_connected, "connections_total{side=\"client\"}", "")                              \
	M(client_connect_failed, "connections_failed_total",                                       \
	  "Connections to next hops that never became ready")                                      \
	M(tls_client_matched, "tls_connections_total{side=\"client\",result=\"matched\"}",         \
	  "Connections to next hops, by result of TLS")                                            \
	M(tls_client_dane, "tls_connections_total{side=\"client\",result=\"dane\"}", "")           \
	M(tls_client_sts, "tls_connections_total{side=\"client\",result=\"mta-sts\"}", "")         \
	M(tls_client_unverified, "tls_connections_total{side=\"client\",result=\"unverified\"}",   \
	  "")                                                                                      \
	M(tls_client_untrusted, "tls_connections_total{side=\"client\",result=\"untrusted\"}", "") \
	M(tls_client_failed, "tls_connections_total{side=\"client\",result=\"failed\"}", "")       \
	M(tls_client_missing, "tls_connections_total{side=\"client\",result=\"missing\"}", "")     \
	M(tls_client_broken, "tls_connections_total{side=\"client\",result=\"broken\"}", "")       \
	M(tls_client_clear, "tls_connections_total{side=\"client\",result=\"clear\"}", "")         \
	M(sts_policies, "mta_sts_policies", "MTA-STS policies known")                              \
	M(sts_testing_failed, "mta_sts_testing_failures_total",                                    \
	  "Connections that an MTA-STS policy in testing mode would have refused")                 \
	M(dkim_rsa, "dkim_signatures_total{algorithm=\"rsa-sha256\"}",                             \
	  "Signatures put on messages")                                                            \
	M(dkim_ed25519, "dkim_signatures_total{algorithm=\"ed25519-sha256\"}", "")                 \
	M(dkim_failed, "dkim_failures_total",                                                      \
	  "Messages not accepted because they could not be signed")                                \
	M(archive_copies, "archive_copies_total", "Copies made for an archive")                    \
	M(archive_failures, "archive_failures_total",                                              \
	  "Attempts at such a copy that it was not taken in")                                      \
	M(archive_held, "archive_held_total", "Such copies put on hold, as too old")               \
	M(under_way, "deliveries_under_way", "Transactions that connections to next hops carry")   \
	M(commits, "commits_total", "Syncs of the queue's log")                                    \
	M(committed_bytes, "committed_bytes_total", "Bytes written to the queue's log")            \
	M(commit_failures, "commit_failures_total", "Writes or syncs of the queue that failed")    \
	M(files_created, "files_created_total", "Files created in the queue")                      \
	M(queue_incoming, "queue_messages{queue=\"incoming\"}", "Messages in each queue")          \
	M(queue_active, "queue_messages{queue=\"active\"}", "")                                    \
	M(queue_deferred, "queue_messages{queue=\"deferred\"}", "")                                \
	M(queue_hold, "queue_messages{queue=\"hold\"}", "")                                        \
	M(queue_bytes, "queue_bytes", "Size of the queue on disk, with large messages")            \
	M(queue_live_bytes, "queue_live_bytes", "Part of the queue on disk that is needed")        \
	M(compacted_bytes, "compacted_bytes_total",                                                \
	  "Bytes copied so that segments could be removed")                                        \
	M(disk_full, "queue_disk_full", "1 while new mail is refused because the disk is full")    \
	M(replica_away, "replica_away", "1 while the copy of the queue is not kept up")            \
	M(node_up, "node_up", "1 while this node has its epoch: it takes mail and delivers it")    \
	M(node_renewals_failed, "node_renewals_failed_total",                                      \
	  "Times that its epoch could not be renewed")                                             \
	M(node_adopted, "node_adopted_messages_total",                                             \
	  "Messages taken from the queues of other nodes")                                         \
	M(node_adopted_in_doubt, "node_adopted_in_doubt_total",                                    \
	  "Of them, those that were being delivered there")                                        \
	M(replica_lag_bytes, "replica_lag_bytes", "Bytes of the queue that its copy has not")      \
	M(replica_bytes, "replica_bytes_total", "Bytes that the copy of the queue has taken")      \
	M(replica_messages, "replica_messages_total", "Messages in which it took them")            \
	M(replica_failures, "replica_failures_total",                                              \
	  "Times that what was under way to the copy had to be sent again")                        \
	M(disk_failing, "queue_disk_failing", "1 while the queue cannot be written")               \
	M(events_taken, "events_total{result=\"taken\"}", "Events for the receiver, by result")    \
	M(events_refused, "events_total{result=\"refused\"}", "")                                  \
	M(events_lost, "events_total{result=\"lost\"}", "")                                        \
	M(events_waiting, "events_waiting", "Events that the receiver has not taken yet")          \
	M(log_dropped, "log_dropped_total", "Lines that could not be logged")                      \
	M(dns_queries, "dns_sent_total", "Questions sent to name servers")                         \
	M(dns_cache_hits, "dns_cache_hits_total", "Questions answered from the cache")             \
	M(dns_noerror, "dns_queries_total{result=\"noerror\"}",                                    \
	  "Questions to name servers, by result")                                                  \
	M(dns_nxdomain, "dns_queries_total{result=\"nxdomain\"}", "")                              \
	M(dns_servfail, "dns_queries_total{result=\"servfail\"}", "")                              \
	M(dns_refused, "dns_queries_total{result=\"refused\"}", "")                                \
	M(dns_other, "dns_queries_total{result=\"other\"}", "")                                    \
	M(dns_timeout, "dns_queries_total{result=\"timeout\"}", "")                                \
	M(dns_failed, "dns_queries_total{result=\"failed\"}", "")                                  \
	M(dnssec_secure, "dns_answers_total{dnssec=\"secure\"}",                                   \
	  "Answers of name servers, by DNSSEC status")                                             \
	M(dnssec_insecure, "dns_answers_total{dnssec=\"insecure\"}", "")                           \
	M(dnssec_bogus, "dns_answers_total{dnssec=\"bogus\"}", "")                                 \
	M(dnssec_indeterminate, "dns_answers_total{dnssec=\"indeterminate\"}", "")                 \
	M(tlsa_usable, "dns_tlsa_total{result=\"usable\"}",                                        \
	  "Hosts whose TLSA records were looked up, by result")                                    \
	M(tlsa_unusable, "dns_tlsa_total{result=\"unusable\"}", "")                                \
	M(tlsa_none, "dns_tlsa_total{result=\"none\"}", "")                                        \
	M(tlsa_failed, "dns_tlsa_total{result=\"failed\"}", "")                                    \
	M(dnssec_validating, "dns_dnssec_validating", "1 while answers are validated here")        \
	M(cluster_away, "cluster_away", "1 while Redis, where there should be one, is away")       \
	M(cluster_full, "cluster_full", "1 while Redis has no memory left")                        \
	M(cluster_commands_answered, "cluster_commands_total{result=\"answered\"}",                \
	  "Commands to Redis, by what came of them")                                               \
	M(cluster_commands_refused, "cluster_commands_total{result=\"refused\"}", "")              \
	M(cluster_commands_lost, "cluster_commands_total{result=\"lost\"}", "")

enum metric {
#define M(name, prometheus, sentence) METRIC_##name,
	METRICS(M)
#undef M
		METRIC_COUNT
};

void metrics_add(enum metric, int64_t);
int64_t metrics_sum(enum metric);

/* H(name, family, label or "", what is put in, bounds, sentence): bounds are upper limits, in the unit
 * of what is put in; rows of one family stand together and have the same bounds. */
#define HISTOGRAMS(H)                                                                              \
	H(commit_seconds, "commit_seconds", "", MICROSECONDS, COMMIT_BOUNDS,                       \
	  "Time to write and sync one batch of the queue")                                         \
	H(commit_messages, "commit_messages", "", NUMBERS, MESSAGE_BOUNDS,                         \
	  "New messages that one sync made durable")                                               \
	H(turn_main, "loop_turn_seconds", "thread=\"main\"", MICROSECONDS, COMMIT_BOUNDS,          \
	  "Time that threads have worked between two sleeps, by thread")                           \
	H(turn_smtpd, "loop_turn_seconds", "thread=\"smtpd\"", MICROSECONDS, COMMIT_BOUNDS, "")    \
	H(turn_spool, "loop_turn_seconds", "thread=\"spool\"", MICROSECONDS, COMMIT_BOUNDS, "")    \
	H(turn_qmgr, "loop_turn_seconds", "thread=\"qmgr\"", MICROSECONDS, COMMIT_BOUNDS, "")      \
	H(turn_smtpc, "loop_turn_seconds", "thread=\"smtpc\"", MICROSECONDS, COMMIT_BOUNDS, "")    \
	H(turn_other, "loop_turn_seconds", "thread=\"other\"", MICROSECONDS, COMMIT_BOUNDS, "")    \
	H(replicate_seconds, "replicate_seconds", "", MICROSECONDS, COMMIT_BOUNDS,                 \
	  "Time that a message of a client waited for the copy of the queue, once it was synced")  \
	H(before_queue_manager, "delivery_seconds", "stage=\"before_queue_manager\"",              \
	  MICROSECONDS, DELIVERY_BOUNDS,                                                           \
	  "Time of attempts on recipients that reached a next hop, by stage")                      \
	H(in_queue, "delivery_seconds", "stage=\"in_queue\"", MICROSECONDS, DELIVERY_BOUNDS, "")   \
	H(connection_setup, "delivery_seconds", "stage=\"connection_setup\"", MICROSECONDS,        \
	  DELIVERY_BOUNDS, "")                                                                     \
	H(transmission, "delivery_seconds", "stage=\"transmission\"", MICROSECONDS,                \
	  DELIVERY_BOUNDS, "")

enum { HISTOGRAM_BUCKETS = 16 }; /* the last has no bound */

#define COMMIT_BOUNDS                                                                              \
	100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000,     \
		2500000, 10000000
#define MESSAGE_BOUNDS 0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000
#define DELIVERY_BOUNDS                                                                            \
	1000, 5000, 10000, 50000, 100000, 500000, 1000000, 5000000, 15000000, 60000000, 300000000, \
		1800000000, 7200000000, 43200000000, 172800000000

enum metric_histogram {
#define H(name, ...) HISTOGRAM_##name,
	HISTOGRAMS(H)
#undef H
		HISTOGRAM_COUNT
};

void metrics_observe(enum metric_histogram, int64_t value); /* microseconds, or a number; >= 0 */

struct histogram_sum {
	int64_t count, sum;
	int64_t bucket[HISTOGRAM_BUCKETS]; /* each by itself */
};

void metrics_histogram(enum metric_histogram, struct histogram_sum *);
const int64_t *metrics_bounds(enum metric_histogram); /* HISTOGRAM_BUCKETS - 1 of them */

/* F(name, family, label, second label or NULL, sentence) */
#define FAMILIES(F)                                                                                \
	F(deliveries, "deliveries_total", "result", "transport",                                   \
	  "Attempts on recipients, by result")                                                     \
	F(rejects, "rejects_total", "stage", NULL, "Commands and messages refused")                \
	F(auth, "auth_total", "result", "mechanism", "Attempts to log in, by result")              \
	F(verifications, "verifications_total", "result", "remembered",                            \
	  "Answers to questions about recipients")                                                 \
	F(known_refusals, "known_refusals_total", "reason", NULL,                                  \
	  "Recipients refused by what is known of them, without asking a next hop")                \
	F(limits, "limits_total", "by", "action",                                                  \
	  "Messages and recipients beyond a limit, by kind of limit and action")                   \
	F(sts_fetches, "mta_sts_fetches_total", "result", NULL,                                    \
	  "MTA-STS policies fetched, by result")                                                   \
	F(tls_reports, "tls_reports_total", "result", NULL,                                        \
	  "Reports on TLS, by result for each recipient")                                          \
	F(conditions, "conditions", "name", NULL,                                                  \
	  "What keeps mail from being taken or sent, or will soon, by name")                       \
	F(milter_up, "milter_up", "milter", NULL, "1 while a filter works, 0 while it does not")   \
	F(milter_failures, "milter_failures_total", "milter", NULL,                                \
	  "How often a filter was down, too slow, or sent nonsense")                               \
	F(milter_answers, "milter_answers_total", "milter", "answer",                              \
	  "Answers of filters, by kind")                                                           \
	F(filtered, "filtered_total", "milter", "action",                                          \
	  "What filters wanted, and what was done because one failed")                             \
	F(cluster_nodes, "cluster_nodes", "state", NULL, "Nodes of the cluster that are known")    \
	F(cluster_queues, "cluster_queues", "state", NULL,                                         \
	  "Nodes of the cluster by who may answer for their queue, as NATS says")                  \
	F(cluster_sum, "cluster_sum", "counter", NULL,                                             \
	  "What all nodes say of themselves, added up")                                            \
	F(sites_held, "sites_held", "constraint", NULL,                                            \
	  "Sites that mail waits for, by what holds it back")                                      \
	F(provider_deliveries, "provider_deliveries_total", "result", "provider",                  \
	  "Attempts on recipients at hosts of a provider, by result")                              \
	F(provider_refusals, "provider_pace_refusals_total", "provider", NULL,                     \
	  "Transactions that hosts of a provider refused for their rate or volume, or for us")     \
	F(provider_connections, "provider_connections", "provider", NULL,                          \
	  "Connections to hosts of a provider")                                                    \
	F(provider_pace, "provider_pace_per_hour", "provider", NULL,                               \
	  "Deliveries in an hour that a provider was found to let through, while that is known")   \
	F(source_deliveries, "source_deliveries_total", "result", "source",                        \
	  "Attempts on recipients from a source, by result")                                       \
	F(source_refusals, "source_refusals_total", "source", NULL,                                \
	  "How often the hosts of a destination refused the address of a source")                  \
	F(certificate_expiry, "certificate_expiry_seconds", "certificate", NULL,                   \
	  "Seconds until the certificate of a listener expires")

enum metric_family {
#define F(name, ...) FAMILY_##name,
	FAMILIES(F)
#undef F
		FAMILY_COUNT
};

enum { METRIC_CELLS_MAX = 400 };

struct metric_cell;

struct metric_cell *metric_cell(enum metric_family, const char *first, const char *second);
/* The cell with these values of the labels, made at first use; second is NULL where the family has
 * one label. */

void metric_cell_add(struct metric_cell *, int64_t);
void metric_cell_set(struct metric_cell *, int64_t);
/* Of a gauge. METRIC_GONE: there is no such thing any more, and it is not printed. */

#define METRIC_GONE INT64_MIN

int64_t metric_cells_sum(enum metric_family, const char *first);
/* Of those with this value of the first label; NULL: of all. */

const struct metric_cell *metric_cell_next(enum metric_family, const struct metric_cell *);
/* All cells of a family, from the oldest; NULL begins, and ends. */

const char *metric_cell_label(const struct metric_cell *, int n); /* 0 or 1 */
int64_t metric_cell_value(const struct metric_cell *);

#endif
