/* spool.h - the durable queue: one log, group commit, recovery.
 *
 *	smtpd, qmgr (bounces) -- SPOOL_STORE -----> +-------+ -- SPOOL_STORED --> who asked
 *	qmgr -- SPOOL_DELIVERED, SPOOL_RELEASE ---> | spool | -- SPOOL_ARRIVAL --> qmgr
 *	qmgr -- SPOOL_CREDIT, SPOOL_UNPARK -------> |       | -- SPOOL_CANCEL ---> qmgr
 *	                                            |       | -- SPOOL_MOVED ----> qmgr
 *	cmd  -- SPOOL_COMMAND --------------------> +-------+ -- SPOOL_COMMAND --> who asked
 *	                                               |
 *	                                    one write, one fdatasync a batch
 *
 * The thread takes all that was posted while the last sync ran, appends it with one write, syncs
 * once if anything in it needs that, and only then answers. A message is handed to qmgr in the
 * same batch that stores it, its start record beside its envelope, as long as qmgr has given
 * credit for it; else it waits in the index, as do deferred messages until they are due.
 *
 *	spool.c               made, started, stopped  record.c           frames, CRCs, heads of segments
 *	inbox.c               notes in                payload.c          what records say, as bytes
 *	turn.c                one turn of the loop    verdicts.c         the verdicts among that
 *	commit.c              one batch               segment.c          one file of the log
 *	commit_records.c      its records             journal.c          the files in a row
 *	effect.c              what follows from it            journal_collect.c  those that go
 *	inflow.c              whose is next           places.c           who has places in work
 *	runner.c              due messages            lane.c             the end of one row of them
 *	operator.c            its commands            survey.c           what is wrong in a segment
 *	compact.c             make room               catalog.c          the messages by id
 *	checkpoint.c          where to start          due.c              the messages by time
 *	fetch.c               read one back           stub.c             what memory keeps of one
 *	spool_file.c          large content           scan.c             read a segment, damaged or not
 *	content_writer.c      content as it is made
 *	layout.c              folders, lock           found.c            the messages that recovery finds
 *	recover.c             its own thread          disk.c             every call to the disk
 *	recovered_read.c      reads segments          shape.c            who waits since when, as a table
 *	recovered_conclude.c  what they mean          domains.c          the domains in it
 *	replay.c              records, together       inventory.c        files in log/
 *	quarantine.c          damage kept aside       verify.c           whether a message is whole
 *	spool_check.c         read all, offline       repair.c           make it whole, offline
 *	check_open.c          its folders             shrink.c           memory given back
 *	parked.c              messages by site            spool_look.c       read it, offline
 *	sample.c              some of those that fit    large_sync.c       large content, beside it
 *	gather.c              how long a batch waits    replicate.c        a copy elsewhere
 *	adoption.c            messages of another node    spare.c            segments for another life
 *	removal.c             files go, beside it         ahead.c            the next segment, beside it
 *	room.c                whether the disk takes mail         overdue.c          what was due at the end
 *	copy_wait.c           what waits for the copy           given_back.c       of another node, given back
 *	older_copy.c          content in another place
 *
 * OWNERSHIP  Given away by posting, both ways.
 * THREAD     spool_new(), spool_start(), spool_settle(), spool_stop(), spool_free(): main. spool_file_*(): whoever
 *            holds the file. The rest is posted to spool_loop().
 * ERRORS     A write or sync that fails: every store of that batch is answered with stored = false,
 *            the segment is never appended to again, and a fresh one is tried. A damaged record is
 *            logged with segment and offset, copied to quarantine/, and costs no other message.
 * SEE        FINCH 2007, log-structured queue; spool/README.md for the format on disk.
 */
#ifndef SPOOL_SPOOL_H
#define SPOOL_SPOOL_H

#include "base/conf.h"
#include "base/content.h"
#include "base/envelope.h"
#include "base/loop.h"

enum { SPOOL_CONTENT_INLINE_MAX = 512 << 10 }; /* bytes; larger content has a file of its own */

enum spool_note {
	SPOOL_STORE = NOTES_FROM(NOTES_OF_SPOOL),
	SPOOL_STORED,
	SPOOL_ARRIVAL,
	SPOOL_DELIVERED,
	SPOOL_RELEASE,
	SPOOL_CREDIT,
	SPOOL_CANCEL,
	SPOOL_MOVED,
	SPOOL_COMMAND,
	SPOOL_UNPARK,
	SPOOL_ADOPTED, /* what was stored as adopted is this node's from now on */
	SPOOL_DISOWN,  /* what was stored as adopted is to go: another node has it, or will */
	SPOOL_CONF,
};

struct log_held;
struct spool;
struct spool_file;

/* A message to keep. Comes back as SPOOL_STORED with envelope, content and file taken. */
struct spool_store {
	struct note note;
	struct loop *reply_to;
	void *owner;		   /* the asker's own, */
	uint64_t cookie;	   /* and one more */
	struct envelope *envelope; /* id and arrived_ms are set */
	struct content *content;   /* in memory; or NULL when file is set */
	struct spool_file *file;   /* the content of a large message; or NULL */
	struct log_held *log; /* what is logged once it is stored, and before it is worked on */
	bool taken;	      /* of the maildrop: see below */
	bool adopted; /* of another node: not worked on before SPOOL_ADOPTED; see adoption.h */
	bool promised; /* a client waits for the answer: it is to be where the queue is replicated to */
	struct spool_store *with; /* another message, see below; or NULL */
	uint64_t replaces;	  /* a message on hold, see below; or 0 */
	uint32_t generation;	  /* of that one's envelope, as SHOW has said */
	int64_t posted_us;	  /* steady clock: now; or 0 */
	int64_t answered_us; /* the same of when this client's message before was; the answer: now */
	bool stored;	     /* the answer: on stable storage */
	bool uncopied;	     /* and if not: since the queue's copy is away (replicate.h) */
	bool outdated; /* or since what it replaces is not on hold any more, or not as it was */
	uint64_t id;
};

/* A message taken from the maildrop lies in taken/ID too, until it is stored: spool_store.taken has
 * that file removed, and the removal synced, before anybody works on the message. So whatever a
 * start finds there, once recovery has ended, was never worked on, and is to be stored. */

/* spool_store.with is stored in the same batch, or neither of them is, also where the power goes in the midst of
 * it. Nobody has its answer, reply_to is NULL. */

/* spool_store.replaces goes once this one is stored and synced, and not before: where that fails it stays as it
 * was. A crash between the two, or within a second, may leave both, that one still on hold. Orders leave it
 * alone meanwhile. It is not for what a client waits for. */

void spool_store_free(struct spool_store **); /* one that was never posted; NULL is allowed */

/* A message to work on: posted to the loop named in spool_new(). Each takes one credit.
 *
 * After a crash it may hold recipients that are not done and whose last verdict is final all the
 * same: failed, or sent, and the sender may have to be told (envelope_wants_word()). Only what is owed
 * to the sender is left to do for them; they are not to be attempted again. */
struct spool_arrival {
	struct note note;
	struct envelope *envelope;
	struct content *content; /* a reference; bytes in memory, or to be read */
	bool urgent;		 /* the operator has flushed, requeued or released it */
};

/* The final verdicts on a set of recipients of a message being worked on. Synced in its batch.
 * NULL verdict is not allowed. Freed by the spool. */
struct spool_delivered {
	struct note note;
	uint64_t id;
	uint32_t n;
	struct {
		uint32_t recipient;	 /* index in the envelope */
		bool settled;		 /* sent, and nothing is owed to the sender for that */
		struct verdict *verdict; /* a reference */
	} of[];
};

/* Work on a message has ended for now. Posted behind its last SPOOL_DELIVERED. With an envelope:
 * keep it until envelope->due_ms (what is in it replaces all that is known). Without: nothing is
 * left to do; where that is since all of it was delivered just now, this says it, and is synced as a
 * SPOOL_DELIVERED is. Gives the credit back. */
struct spool_release {
	struct note note;
	uint64_t id;
	struct envelope *envelope; /* or NULL */
	bool delivers;		   /* without: no SPOOL_DELIVERED said so of any recipient */
	uint16_t site; /* whose mail it is, up to SPOOL_SITE_MAX; 0: no one's in particular */
	bool parked;   /* it waits for that site: see SPOOL_UNPARK */
};

enum {
	SPOOL_SITE_NAMES = 1, /* of no site: what waits for the DNS, wherever it goes */
	SPOOL_SITE_MAX = (1 << 13) - 1
};

/* A destination that could not be tried takes mail again: of the messages that are parked for it
 * make due up to `most`, oldest first. The same object comes back to qmgr with what is left. With
 * most = 0 it is only a question. A parked message is due at its envelope's time too, whichever
 * comes first; what a former run of the program had parked waits for that alone. */
struct spool_unpark {
	struct note note;
	uint16_t site; /* not 0 */
	uint32_t most;
	uint32_t parked;  /* answer: that still wait for the site */
	uint32_t waiting; /* answer: deferred messages of the site, parked ones among them */
};

/* qmgr can take n more messages. */
struct spool_credit {
	struct note note;
	int64_t n;
};

/* The operator wants something of this message, and it is being worked on: qmgr releases it as soon as
 * no delivery of it is under way; with its envelope, if that is to be kept. */
struct spool_cancel {
	struct note note;
	uint64_t id;
	bool keep;
};

/* The content of a message being worked on lies somewhere else now; what it was read from will take no
 * room on the disk any more once nothing refers to it. */
struct spool_moved {
	struct note note;
	uint64_t id;
	struct content *content; /* a reference */
};

enum spool_queue { SPOOL_INCOMING, SPOOL_ACTIVE, SPOOL_DEFERRED, SPOOL_HOLD };
const char *spool_queue_name(enum spool_queue);
unsigned spool_queue_bit(const char *name, size_t len); /* 1 << that queue; 0: none is called so */

struct spool_row {
	enum spool_queue queue;
	struct envelope *envelope;
	struct content *content; /* SHOW only; NULL: it can't be had */
	int error;		 /* SHOW: why not, an errno: ENOENT, EBADMSG when damaged, ... */
	uint32_t generation;	 /* of its envelope: another one once it was changed */
	uint16_t site; /* deferred, and due when this site lives again, too: SPOOL_UNPARK; or 0 */
};

enum spool_order {
	SPOOL_LIST,
	SPOOL_SHOW,
	SPOOL_SAMPLE,
	SPOOL_SHAPE,   /* the last that changes nothing */
	SPOOL_FLUSH,   /* due now; what is held only with held_too */
	SPOOL_DELETE,  /* gone, without a word to the sender */
	SPOOL_SUSPEND, /* held, until it is resumed */
	SPOOL_RESUME,  /* no longer held; due now, or at the time that its sender wants */
	SPOOL_REQUEUE, /* let go of, held or not, and due likewise: routed anew */
	SPOOL_BOUNCE,  /* returned to its sender */
};

/* Why an order left a message as it was. */
enum spool_unmoved {
	SPOOL_HELD,	/* suspend: it is already; flush: it has to be released */
	SPOOL_NOT_HELD, /* resume */
	SPOOL_AT_WORK,	/* flush: its attempt is under way, or nothing but room for it is missing */
	SPOOL_STUCK,	/* the disk fails, or what is on it can't be read */
	SPOOL_MISSING,	/* no message of that id */
	SPOOL_ADOPTING, /* it is being taken from another node */
	SPOOL_REPLACED, /* another message is just taking its place */
	SPOOL_SCHEDULED, /* flush, resume: its sender wants it sent later, and held_too was not said */
	SPOOL_UNMOVED
};

/* A question or an order of the operator; the same object comes back, after recovery. It is about what was
 * posted before it, but for large messages that had no answer yet: they are not in the queue. */
struct spool_command {
	struct note note;
	struct loop *reply_to;
	void *owner;
	enum spool_order op;
	bool checked; /* SHOW: content that lies in the log is compared with its sum first */
	int asker;    /* the asker's own: who of its parts asked */
	uint64_t id;  /* LIST, SHOW; the orders: that message, or 0: all */
	uint64_t
		after; /* LIST, SHAPE, SAMPLE: messages with a larger id, in order of id; the last one that
			    * was looked at comes back */
	uint64_t until; /* orders, the spool's own: not for those that come later */
	int limit;	/* LIST, SHAPE: at most so many messages; 0: SHAPE: all */
	bool more;	/* answer of SHAPE, SAMPLE: there are more */
	bool unranked;	/* SHAPE: shape_rank() is left to the asker */
	char *domain; /* LIST, the orders: with a recipient left there, however it is written: a key of name_key.h; NULL: all */
	bool held_too; /* FLUSH: release what is held. FLUSH, RESUME: and what its sender wants sent later */
	bool held_only;	   /* LIST, DELETE: nothing that is not held */
	bool fresh;	   /* RESUME: as if it had come in now: its lifetime begins anew */
	int64_t affected;  /* answer: messages that an order was for */
	int64_t cancelled; /* of them, done once what is under way has ended */
	int64_t unmoved[SPOOL_UNMOVED]; /* answer: the others that were chosen, and why */
	bool unsafe;	  /* the disk fails: a crash before it works again would undo this */
	bool recorded;	  /* orders, the spool's own: something was written, */
	uint64_t barrier; /* and what its answer waits for: replicate.h */
	bool uncopied; /* the copy is away: whoever adopts this queue before it is back knows nothing of this */
	int nrow;
	struct spool_row *row; /* answer of LIST, SHOW */
	int unread; /* of LIST, SHAPE: so many others are there, whose envelopes can't be had, */
	int error;  /* and why, an errno, of the last. SHOW: likewise; 0: it is not there */
	struct shape *shape;   /* SHAPE: what is asked for, and the answer */
	struct sample *sample; /* SAMPLE: likewise */
};

struct sample;
struct shape;

struct spool_command *spool_command_new(int op, struct loop *reply_to, void *owner);
void spool_command_free(struct spool_command **);

struct spool *spool_new(struct conf *, struct loop *qmgr, struct buf *error);
/* Open or create the queue: folders, lock, a fresh segment. Takes mail as soon as it is started;
 * what older segments hold is recovered beside that. NULL: error says why (another process has
 * it, a newer format, no permission). */

void spool_replicate(struct spool *, struct loop *keeper, bool waits, bool degrade);
/* Before spool_start(): tell this loop what becomes of the queue's files. waits: clients are answered when it
 * has a copy; degrade: but not while it is away. See replicate.h. */

void spool_start(struct spool *);
void spool_settle(struct spool *);
/* Wait until what was posted is committed and answered. It goes on. */

void spool_stop(struct spool *);
/* Notes that were posted are committed and answered first; later ones are freed unanswered. Loops
 * named in notes must still be there. */

void spool_free(struct spool **);
struct loop *spool_loop(struct spool *);

void spool_post(struct spool *, struct note *);
/* The same as to post it to the loop, but that it wakes the spool only if need be: while a commit
 * waits for company, messages do when all that are under way have come, records of deliveries never.
 * Any thread. */

void spool_reload(struct spool *, struct conf *); /* takes a reference */

struct spool_file *spool_file_new(struct spool *, uint64_t id);
/* A file for the content of a large message; NULL and errno when it can't be made. */

int spool_file_write(struct spool_file *, const void *, size_t len); /* 0, or an errno */
uint64_t spool_file_size(const struct spool_file *);

ssize_t spool_file_read(const struct spool_file *, uint64_t offset, void *to, size_t len);
/* Read what was written, while whoever writes it has it; as content_read(). */

void spool_file_unname(struct spool_file *);
/* The file makes room for another of the same message, and can still be read; it is not to be stored. */

void spool_file_discard(struct spool_file **); /* the message did not come to be */

void spool_expect(struct spool *, int n);
/* A transaction that may soon bring a message has begun (1), or has ended or become a long one (-1). Any
 * thread. Group commit waits for them, as long as that is worth it: gather.h. One alone never waits. */

void spool_drain(struct spool *);
/* Deferred messages stay, due or not, to the end of the program. Any thread. */

bool spool_would_open(const char *folder, struct buf *why);
/* Whoever starts with this folder can write to it, and knows its format: it is not on a disk that became read-only, nor another
 * user's by now. Any thread. */

bool spool_is_taken(const char *folder); /* another process has it now. Any thread. */

int64_t spool_turn_began_ms(const struct spool *);
/* Steady clock: when the turn of its thread began that is not over yet; 0: it has none. One that stays the same waits for
 * the disk. Any thread. */

bool spool_accepting(const struct spool *);
/* False while new mail would be refused: the disk is full or failing, or the fence is closed. Any thread; a
 * hint. */

bool spool_uncopied(const struct spool *);
/* New mail is refused since the queue's copy is away (replicate.h). Any thread; a hint. */

bool spool_behind(const struct spool *, const char *flow);
/* True from when messages of this flow wait since it has its share of the active ones, until none
 * does: who brings more of it should slow down (in_flow_delay). Any thread; a hint. */

#endif
