# Perl: -xnolibs, -G without -o when it is configured, and three objects of one provider
# for copies of objects. It is built in its own folder.
package=perl
programs=(perl miniperl)
guarded=:perl:

configure() {
	cp -r "$source/." .
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

suite="\`harness\` of base, cmd, comp, run and parts of op, re, lib"
tests() {
	make --silent --jobs="$jobs" test_prep
	cd t
	TEST_JOBS=$jobs ./perl -I../lib harness base/*.t cmd/*.t comp/*.t run/*.t \
		op/{array,arith,attrs,caller,chop,closure,coreamp,defer,die,do,each,eval,goto,hash,inc,lc,lexsub,local,loopctl,magic,method,my,pack,push,rand,ref,reset,signatures,sort,split,sprintf,state,sub,sub_lval,switch,tie,tiearray,tiehandle,try,undef,universal,wantarray}.t \
		re/{pat,regexp,subst}.t lib/{croak,warnings}.t
}
summary() { grep --extended-regexp '^(Files=|Result)' | cut -d, -f1,2 | paste --serial --delimiters=' '; }

# All depends on the header, so that it is as old as before.
remake() {
	touch --reference=perldtrace.h ../header.time
	rm perldtrace.h
	make DTRACE="$dtrace" perldtrace.h
	touch --reference=../header.time perldtrace.h
	make --jobs="$jobs" DTRACE="$dtrace" perl
}
