# Perl: -xnolibs, -G without -o when it is configured, and three objects of one provider
# for copies of objects. It is built in its own directory.
package=perl
programs=(perl miniperl)
guarded=:perl:

configure() {
	cp -r --preserve=timestamps "$source/." .
	sh Configure -des -Doptimize=-O2 -Dusedtrace="$dtrace"
}
build() { make --jobs="$jobs"; }

job() {
	PERL_HASH_SEED=0 ./perl -Ilib -e '
		use strict; use File::Spec; require Text::Wrap;
		sub f { my $n = shift; return $n < 2 ? $n : f($n - 1) + f($n - 2) }
		print f(10), "\n", File::Spec->catfile("a", "b"), "\n", Text::Wrap::wrap("", "  ", "word " x 30), "\n";
		eval { die "x" };'
	./miniperl -Ilib -e 'print join(" ", map { $_ * 2 } 1 .. 10), "\n"'
}

# But for what compares sources that Debian has changed with sums of those it has not.
suite="\`make test_harness\`"
tests() { make --silent test_harness TEST_JOBS="$jobs" TEST_ARGS="-nre customized"; }
summary() { grep --extended-regexp '^(Files=|Result)' | cut -d, -f1,2 | paste --serial --delimiters=, | sed "s|,|, |g; s|,  *|, |g"; }

# All depends on the header, so that it is as old as before.
remake() {
	touch --reference=perldtrace.h ../header.time
	rm perldtrace.h
	make DTRACE="$dtrace" perldtrace.h
	touch --reference=../header.time perldtrace.h
	make --jobs="$jobs" DTRACE="$dtrace"
}
