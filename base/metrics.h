/* metrics.h - what is counted.
 *
 * One row a counter, or a gauge. Each thread has its own set, which only it writes; a reader
 * adds them up.
 *
 * OWNERSHIP  Sets are made at first use and stay to the end of the program.
 * THREAD     metrics_add(): any, without waiting. metrics_sum(): any.
 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* M(name, Prometheus name with labels, sentence) */
#define METRICS(M)                                                                                 \
	M(received, "messages_received_total", "Messages accepted")                                \
	M(sent, "deliveries_total{result=\"sent\"}", "Recipients delivered")                       \
	M(deferred, "deliveries_total{result=\"deferred\"}", "Recipients put off")                 \
	M(failed, "deliveries_total{result=\"failed\"}", "Recipients failed for good")             \
	M(in_doubt, "in_doubt_total", "Recipients whose final reply never came")                   \
	M(bounces, "bounces_total", "Bounces and delay warnings written")                          \
	M(server_connections, "connections{side=\"server\"}", "Client sessions open")              \
	M(client_connections, "connections{side=\"client\"}", "Connections to next hops open")     \
	M(server_connected, "connections_total{side=\"server\"}", "Client sessions begun")         \
	M(client_connected, "connections_total{side=\"client\"}",                                  \
	  "Connections to next hops begun")                                                        \
	M(client_connect_failed, "connections_failed_total",                                       \
	  "Connections that never became ready")                                                   \
	M(rejects, "rejects_total", "Commands and messages refused")                               \
	M(under_way, "deliveries_under_way", "Transactions that connections to next hops carry")   \
	M(commits, "commits_total", "Syncs of the queue's log")                                    \
	M(committed_bytes, "committed_bytes_total", "Bytes written to the queue's log")            \
	M(commit_us, "commit_microseconds_total", "Time spent in those writes and syncs")          \
	M(commit_failures, "commit_failures_total", "Writes or syncs of the queue that failed")    \
	M(files_created, "files_created_total", "Files created in the queue")                      \
	M(queue_incoming, "queue_messages{queue=\"incoming\"}", "Messages not started")            \
	M(queue_active, "queue_messages{queue=\"active\"}", "Messages being worked on")            \
	M(queue_deferred, "queue_messages{queue=\"deferred\"}", "Messages waiting for their time") \
	M(queue_hold, "queue_messages{queue=\"hold\"}", "Messages held by the operator")           \
	M(queue_bytes, "queue_bytes", "Size of the queue's log on disk")                           \
	M(queue_live_bytes, "queue_live_bytes", "What of it is needed")                            \
	M(compacted_bytes, "compacted_bytes_total", "Bytes moved so that segments could go")       \
	M(disk_full, "queue_disk_full", "1 while new mail is refused for want of room")            \
	M(disk_failing, "queue_disk_failing", "1 while the queue can't be written to")             \
	M(log_dropped, "log_dropped_total", "Lines that the log had no room for")                  \
	M(dns_queries, "dns_queries_total", "Questions sent to name servers")                      \
	M(dns_cache_hits, "dns_cache_hits_total", "Questions answered from the cache")

enum metric {
#define M(name, prometheus, sentence) METRIC_##name,
	METRICS(M)
#undef M
		METRIC_COUNT
};

void metrics_add(enum metric, int64_t);
int64_t metrics_sum(enum metric);
void metrics_print(struct buf *, bool json);
/* "name value" lines (the Prometheus name without its prefix), or one JSON object. */

void metrics_prometheus(struct buf *);
/* Prometheus text format 0.0.4, names with the prefix sluice_. Rows of one family stand
 * together. */

#endif
