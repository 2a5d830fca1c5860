/* SPDX-License-Identifier: ISC */
#include "cmd/page_files.h"

#include <string.h>

/* The assembler reads the file, from the folder in which make runs. */
#define EMBED(symbol, file)                                                                        \
	__asm__(".pushsection .rodata\n"                                                           \
		".global " #symbol "_begin, " #symbol "_end\n" #symbol "_begin:\n"                 \
		".incbin \"cmd/page/" file "\"\n" #symbol "_end:\n"                                \
		".popsection\n");                                                                  \
	extern const char symbol##_begin[], symbol##_end[]

EMBED(page_html, "page.html");
EMBED(page_css, "page.css");
EMBED(page_js, "page.js");
EMBED(page_icon, "icon.svg");

static const struct page_file files[] = {
	{"/", "text/html; charset=utf-8", page_html_begin, page_html_end},
	{"/page.css", "text/css; charset=utf-8", page_css_begin, page_css_end},
	{"/page.js", "text/javascript; charset=utf-8", page_js_begin, page_js_end},
	{"/icon.svg", "image/svg+xml", page_icon_begin, page_icon_end},
};

const struct page_file *page_file(const char *path)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (strcmp(files[i].path, path) == 0)
			return &files[i];
	return NULL;
}
