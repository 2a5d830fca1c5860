/* SPDX-License-Identifier: ISC */
#include "replica/nats_files.h"

static struct stat look_at_file(const char *path)
{
	struct stat is;
	return *path && stat(path, &is) == 0 ? is : (struct stat){.st_size = 0};
}

void nats_files_note(struct nats_files *f, const struct conf_cluster *c)
{
	const char *const path[NATS_FILES] = {c->nats_ca, c->nats_certificate, c->nats_key};
	*f = (struct nats_files){.is = {{.st_size = 0}}};
	for (int i = 0; c->nats_tls && i < NATS_FILES; i++)
		f->is[i] = look_at_file(path[i]);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool nats_files_changed(const struct nats_files *f, const struct conf_cluster *c)
{
	struct nats_files now;
	bool same = true;
	nats_files_note(&now, c);
	for (int i = 0; i < NATS_FILES; i++)
		same &= is_same_file(&f->is[i], &now.is[i]);
	return !same;
}
