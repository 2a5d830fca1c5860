/* SPDX-License-Identifier: ISC */
#include "cmd/http/page_files.h"

#include <string.h>

/* The assembler reads the file, from the folder in which make runs. */
#define EMBED(symbol, file)                                                                        \
	__asm__(".pushsection .rodata\n"                                                           \
		".global " #symbol "_begin, " #symbol "_end\n" #symbol "_begin:\n"                 \
		".incbin \"cmd/http/page/" file "\"\n" #symbol "_end:\n"                           \
		".popsection\n");                                                                  \
	extern const char symbol##_begin[], symbol##_end[]

EMBED(page_html, "page.html");
EMBED(page_css, "page.css");
EMBED(page_js, "page.js");
EMBED(page_parts, "parts.js");
EMBED(page_chart, "chart.js");
EMBED(page_trouble, "trouble.js");
EMBED(page_overview, "overview.js");
EMBED(page_shape, "shape.js");
EMBED(page_destination, "destination.js");
EMBED(page_search, "search.js");
EMBED(page_icon, "icon.svg");

#define SCRIPT(name, symbol)                                                                       \
	{                                                                                          \
		name, "text/javascript; charset=utf-8", symbol##_begin, symbol##_end               \
	}

static const struct page_file files[] = {
	{"/", "text/html; charset=utf-8", page_html_begin, page_html_end},
	{"/page.css", "text/css; charset=utf-8", page_css_begin, page_css_end},
	{"/icon.svg", "image/svg+xml", page_icon_begin, page_icon_end},
	SCRIPT("/page.js", page_js),
	SCRIPT("/parts.js", page_parts),
	SCRIPT("/chart.js", page_chart),
	SCRIPT("/trouble.js", page_trouble),
	SCRIPT("/overview.js", page_overview),
	SCRIPT("/shape.js", page_shape),
	SCRIPT("/destination.js", page_destination),
	SCRIPT("/search.js", page_search),
};

const struct page_file *page_file(const char *path)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (strcmp(files[i].path, path) == 0)
			return &files[i];
	return NULL;
}
