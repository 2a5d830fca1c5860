/* inquiry.h - a question to all nodes, and what each of them says.
 *
 *	CLUSTER_INQUIRY --> who is there? --> PUBLISH --> all nodes, this one too: CLUSTER_ASKED --> main, which fills in what it says
 *	CLUSTER_TOLD, the same object --> PUBLISH, in pieces --> the node that has asked: all who work have said it, or
 *	INQUIRY_MS are over --> CLUSTER_INQUIRY, the same object, with who has said what, and who has not
 *
 *	PREFIX asked		the channel: "NODE<TAB>TOKEN<TAB>QUESTION"
 *	PREFIX told:NODE	that of a node that asks: "TOKEN<TAB>NODE<TAB>PIECE/PIECES<LF>" and a part of the text
 *
 * Nothing is written, and nothing is sent unless somebody asks. Redis says who should answer.
 *
 * OWNERSHIP  One of a cluster. Takes the notes that it is given.
 * THREAD     cluster's.
 * ERRORS     A question that can't be asked comes back with why. A node that says more than CLUSTER_TEXT_MAX, or nothing in
 *            time, has not answered. Of questions of others beyond INQUIRIES_MAX nothing is heard.
 */
#ifndef CLUSTER_INQUIRY_H
#define CLUSTER_INQUIRY_H

#include "cluster/cluster.h"
#include "cluster/link.h"
#include "cluster/nodes.h"

enum {
	INQUIRY_MS = 5000,
	INQUIRIES_MAX = 16,	     /* of ours, and of others that are being answered here */
	INQUIRY_PIECE = 32 << 10,    /* bytes */
	INQUIRY_ROOM_MAX = 64 << 20, /* of all nodes */
};

struct inquiries;

struct inquiries *inquiries_new(struct loop *, struct link *, const char *node, struct nodes *,
				struct loop *main);
void inquiries_free(struct inquiries **);
/* A question not answered yet comes back with why. */

void inquiries_ask(struct inquiries *, struct cluster_inquiry *);
void inquiries_told(struct inquiries *, struct cluster_asked *);

#endif
