/* scenario_table.h - every setting of a scenario beside those of sluice.conf, one row each.
 *
 * As base/conf_table.h: the structs and the parser are made from these rows; sluice-sim(5) says
 * more of each.
 */
#ifndef SIM_SCENARIO_TABLE_H
#define SIM_SCENARIO_TABLE_H

#include "base/conf_table.h"

#define SCENARIO_SIMULATION(P)                                                                     \
	P(number, seed, "1", 1, INT64_MAX, 0, "", "Of all chance; --seed goes before it.")         \
	P(duration, duration, "0s", 0, DAYS(100), 0, "", "When to stop. 0: when nothing is left.") \
	P(duration, sample, "0s", 0, DAYS(1), 0, "",                                               \
	  "Between two points of the time series. 0: as fits.")                                    \
	P(choice, binding, "late", 0, 0, 0, "late|early|both", "How entries meet connections.")    \
	P(flag, connection_cache, "false", 0, 0, 0, "",                                            \
	  "Early binding: keep connections for 2 s.")                                              \
	P(duration, agent_start, "0s", 0, HOURS(1), 0, "",                                         \
	  "Early binding: to start one more agent, one after the other.")                          \
	P(flag, retries, "true", 0, 0, 0, "", "false: what is deferred is not tried again.")       \
	P(duration, dns_latency, "20ms", 0, HOURS(1), 0, "", "Until a name server answers.")       \
	P(duration, commit_latency, "1ms", 0, HOURS(1), 0, "", "Until a report is on disk.")       \
	P(number, nodes, "0", 0, 1000, 0, "",                                                      \
	  "Machines, which share by Redis what they know. 0: one, without Redis.")                 \
	P(duration, settle, "0s", 0, DAYS(100), 0, "",                                             \
	  "What is counted of a cluster is counted from then on.")                                 \
	P(duration, patience, "0s", 0, DAYS(100), 0, "",                                           \
	  "A recipient without a verdict for so long is a fault. 0: none is.")                     \
	P(list, suspend, "{}", 0, 0, 0, "", "\"AT FLOW\" each: then the operator suspends it.")    \
	P(list, periods, "{}", 0, 0, 0, "",                                                        \
	  "\"NAME FROM..TO\" each: what comes in it is told of by groups of flows.")               \
	P(choice, picture, "sites", 0, 0, 0, "sites|flows", "What --plot draws.")                  \
	P(list, columns, "{}", 0, 0, 0, "",                                                        \
	  "\"FROM..TO\" each: spans of that picture of flows. None: all of the time.")

#define SCENARIO_ARRIVAL(P)                                                                        \
	P(choice, distribution, "constant", 0, 0, 0, "constant|poisson|uniform|bursts", "When.")   \
	P(duration, start, "0s", 0, DAYS(100), 0, "", "When the first may come.")                  \
	P(number, messages, "1", 1, 10000000, 0, "", "How many.")                                  \
	P(duration, until, "0s", 0, DAYS(100), 0, "", "None comes after that. 0: all come.")       \
	P(list, hours, "{}", 0, 0, 0, "",                                                          \
	  "poisson: weights of parts of the day, the first from midnight, when the run begins.")   \
	P(list, weekdays, "{}", 0, 0, 0, "",                                                       \
	  "poisson: seven weights, the first of Monday, when the run begins.")                     \
	P(rate, rate, "", 0, 0, 0, "", "constant, poisson: how many in a time.")                   \
	P(duration, within, "0s", 0, DAYS(100), 0, "", "uniform: all come within this time.")      \
	P(number, burst, "10", 1, 10000000, 0, "", "bursts: messages in each.")                    \
	P(duration, interval, "1m", 1, DAYS(100), 0, "", "bursts: between the beginnings of two.") \
	P(list, recipients, "{\"1\"}", 0, 0, 0, "", "Of a message: N or N..N, :weight.")           \
	P(list, domains, "{}", 0, 0, 0, "", "Of a recipient: domain:weight.")                      \
	P(list, sizes, "{\"2k\"}", 0, 0, 0, "", "Of a message: SIZE or SIZE..SIZE, :weight.")      \
	P(list, flows, "{}", 0, 0, 0, "", "Of a message: whose mail it is, flow:weight.")          \
	P(number, node, "0", 0, 1000, 0, "",                                                       \
	  "The machine that all of it comes to, from 1. 0: each message to one by chance.")        \
	P(text, trace, "", 0, 4000, 0, "", "A JSON log of the relay instead of all that.")

#define SCENARIO_SITE(P)                                                                           \
	P(list, domains, "{}", 0, 0, 0, "", "Domains, .parents of domains, or * for the rest.")    \
	P(list, mx, "{}", 0, 0, 0, "", "\"PREFERENCE HOST\" each.")                                \
	P(flag, own_names, "false", 0, 0, 0, "",                                                   \
	  "Each domain calls the hosts by names of its own.")                                      \
	P(text, failure, "", 0, 12, 0, "", "The enhanced code with which the look-up fails.")

#define SCENARIO_HOST(P)                                                                           \
	P(duration, connect, "20ms", 0, HOURS(1), 0, "", "Until a connection is made.")            \
	P(duration, greeting, "20ms", 0, HOURS(1), 0, "", "From there until it may carry mail.")   \
	P(duration, round_trip, "20ms", 0, HOURS(1), 0, "", "A transaction, for the distance.")    \
	P(duration, transaction, "20ms", 0, HOURS(1), 0, "",                                       \
	  "A transaction, for the host's work.")                                                   \
	P(duration, recipient, "0s", 0, HOURS(1), 0, "", "The same for each recipient.")           \
	P(size, bandwidth, "0", 0, MEGA(4096), 0, "",                                              \
	  "Bytes a second that a connection takes. 0: all at once.")                               \
	P(text, noise, "0.1", 1, 16, 0, "", "Each time is longer or shorter by up to this part.")  \
	P(number, depth, "1", 1, 1000, 0, "", "Messages that a connection takes at once.")         \
	P(number, connection_limit, "0", 0, 1000000, 0, "",                                        \
	  "Connections served at once. 0: no limit.")                                              \
	P(list, limits, "{}", 0, 0, 0, "", "\"FROM N\" each: connection_limit from that time on.") \
	P(number, backlog, "0", 0, 1000000, 0, "",                                                 \
	  "Connections beyond it that wait to be served.")                                         \
	P(choice, beyond, "421", 0, 0, 0, "421|mute|drop", "What one finds that is beyond both.")  \
	P(duration, retransmit, "3s", 0, HOURS(1), 0, "",                                          \
	  "mute, drop: when it knocks again; then after twice the time. 0: never.")                \
	P(text, refused, "0", 1, 16, 0, "", "The part of connections that is refused.")            \
	P(text, deferred, "0", 1, 16, 0, "", "The part of recipients that gets 450.")              \
	P(text, failed, "0", 1, 16, 0, "", "The part of recipients that gets 550.")                \
	P(text, broken, "0", 1, 16, 0, "",                                                         \
	  "The part of transactions in which the connection breaks.")                              \
	P(rate, bucket, "", 0, 0, 0, "",                                                           \
	  "Recipients that it takes in a time, 20/s, 100/min or 360/h: beyond it 451 4.7.28 at "   \
	  "the end of data.")                                                                      \
	P(number, bucket_room, "0", 0, 100000000, 0, "",                                           \
	  "How many of them at once. 0: as many as in that time.")                                 \
	P(choice, bucket_filled, "evenly", 0, 0, 0, "evenly|at_once",                              \
	  "Bit by bit, or all of it at the end of each such time.")                                \
	P(choice, bucket_by, "all", 0, 0, 0, "all|source",                                         \
	  "What comes from all addresses of ours goes by one bucket, or each has its own.")        \
	P(text, bucket_of, "", 0, 64, 0, "",                                                       \
	  "Hosts with the same name here have one bucket: that of the first.")                     \
	P(rate, connections, "", 0, 0, 0, "",                                                      \
	  "Connections that it takes in a time: the others get 421.")                              \
	P(duration, greylisting, "0s", 0, DAYS(100), 0, "",                                        \
	  "Mail that is younger gets 451 4.7.1.")                                                  \
	P(list, blocked, "{}", 0, 0, 0, "",                                                        \
	  "\"FROM..TO ADDRESS\" each: it wants nothing from this address of ours.")                \
	P(choice, block, "554", 0, 0, 0, "554|550|450",                                            \
	  "How it says so: in the greeting, to MAIL.")                                             \
	P(list, outages, "{}", 0, 0, 0, "", "\"FROM..TO\" each.")                                  \
	P(duration, outage_every, "0s", 0, DAYS(100), 0, "",                                       \
	  "They come again after this time. 0: they do not.")                                      \
	P(choice, outage, "refused", 0, 0, 0, "refused|silent|421",                                \
	  "What connects to it finds then.")

#define SCENARIO_REDIS(P)                                                                          \
	P(duration, round_trip, "1ms", 0, HOURS(1), 0, "", "There and back.")                      \
	P(number, commands, "220000", 1, 100000000, 0, "",                                         \
	  "Commands a second that it carries out.")                                                \
	P(number, scripts, "100000", 1, 100000000, 0, "", "Scripts a second.")                     \
	P(number, fields, "1000000", 1, 1000000000, 0, "",                                         \
	  "Fields of a hash a second that a script looks at.")                                     \
	P(number, deliveries, "500000", 1, 1000000000, 0, "",                                      \
	  "Messages a second to those who have subscribed.")                                       \
	P(list, outages, "{}", 0, 0, 0, "",                                                        \
	  "\"FROM..TO\" each: it can not be reached, and has forgotten nothing.")

#define SCENARIO_ROW(P)                                                                            \
	P(feedback, feedback, "1", 0, 0, 0, "", "Positive and negative, of every transport.")      \
	P(flag, connection_cache, "false", 0, 0, 0, "", "As in simulation.")                       \
	P(number, nodes, "0", 0, 1000, 0, "", "As in simulation; 0: as there.")                    \
	P(duration, duration, "0s", 0, DAYS(100), 0, "", "As in simulation; 0: as there.")         \
	P(flag, one_flow, "false", 0, 0, 0, "", "The scheduler takes all mail for one sender's.")  \
	P(number, sources, "0", 0, 100, 0, "",                                                     \
	  "Only so many of the sources that a transport or a flow names. 0: all.")                 \
	P(text, published_deferred, "", 0, 16, 0, "", "Per cent of the recipients, as published.") \
	P(text, published_concurrency, "", 0, 16, 0, "", "Mean of the window.")                    \
	P(text, published_deviation, "", 0, 16, 0, "", "Its standard deviation.")                  \
	P(text, published_connect_timeouts, "", 0, 16, 0, "", "Recipients.")                       \
	P(text, published_greeting_timeouts, "", 0, 16, 0, "", "Recipients.")

#endif
