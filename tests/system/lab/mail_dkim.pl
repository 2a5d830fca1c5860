#!/usr/bin/perl
# SPDX-License-Identifier: ISC
# mail_dkim.pl ADDRESS PORT - verify messages from standard input, each behind its length in four bytes, with
# keys from that name server: a line for each, the results of its signatures.
use strict;
use warnings;
use Mail::DKIM::Verifier;
use Mail::DKIM::DNS;
use Net::DNS::Resolver;

my ($address, $port) = @ARGV;
Mail::DKIM::DNS::resolver(
	Net::DNS::Resolver->new(nameservers => [$address], port => $port, recurse => 0));
binmode STDIN;
my @contents;
while (read(STDIN, my $length, 4) == 4) {
	read(STDIN, my $content, unpack('N', $length));
	push @contents, $content;
}
for my $content (@contents) {
	my $verifier = Mail::DKIM::Verifier->new();
	$verifier->PRINT($content);
	$verifier->CLOSE();
	my @results = map { $_->result() } $verifier->signatures();
	print join(' ', map { defined $_ ? $_ : 'none' } @results), "\n";
}
