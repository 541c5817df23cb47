# Tcl: a source that asks whether the header has been read, by the macro of its name, and
# probes in a shared library.
package=tcl8.6
programs=(libtcl8.6.so)
guarded=':tcl:(cmd|inst|proc|tcl)__'
# What makes arguments of other probes creates objects.
caused=:tcl:obj__

# TEBCresume reads curInstName before it is set, so what the stack has left decides how often
# inst-done counts: it has to begin as zero.
configure() { "$source/unix/configure" --quiet --enable-dtrace CFLAGS=-ftrivial-auto-var-init=zero; }
build() { make --silent --jobs="$jobs"; }

job() {
	LD_LIBRARY_PATH=. TCL_LIBRARY=$source/library ./tclsh <<-'END'
		proc f {n} { if {$n < 2} { return $n } ; expr {[f [expr {$n - 1}]] + [f [expr {$n - 2}]]} }
		puts [f 8]
		oo::class create c { method m {x} { return $x } }
		puts [[c new] m 3]
		tcl::dtrace a b c
		catch { error bad }
	END
}

suite="\`make test-tcl\` of 13 files"
tests() { make --silent test-tcl TESTFLAGS="-file 'proc.test proc-old.test cmd*.test compile.test execute.test oo.test namespace.test upvar.test trace.test if.test'"; }
summary() { grep --text '^all.tcl:' | tr '\t' ' '; }

# All depends on the header, so that it is as old as before.
remake() {
	touch --reference=tclDTrace.h ../header.time
	rm tclDTrace.h
	make --silent DTRACE="$dtrace" tclDTrace.h
	touch --reference=../header.time tclDTrace.h
	make --silent --jobs="$jobs" DTRACE="$dtrace"
}
