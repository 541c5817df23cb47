# CPython: its configure asks whether BEGIN{} makes an object, its sed replaces the first
# name of each line, and C++ gets the header within extern "C".
package=python3.11
programs=(python)
guarded=:python:

configure() { "$source/configure" --quiet --with-dtrace --without-ensurepip OPT="-DNDEBUG -O2"; }
build() { make --silent --jobs="$jobs"; }

# What test_dtrace traces. Modules are compiled before, so that each run does the same.
job() {
	local i
	for i in call_stack gc line; do
		PYTHONHASHSEED=0 ./python "$source/Lib/test/dtracedata/$i.py"
	done
	PYTHONHASHSEED=0 ./python -c 'import json, decimal; print(json.dumps({"a": [1, 2]}), decimal.Decimal(1) / 3)'
}
fresh() { job; }

suite="\`python -m test\` of 22 files"
tests() {
	PYTHONDONTWRITEBYTECODE=1 ./python -m test -j"$jobs" test_dtrace test_gc test_import test_importlib test_sys test_sys_settrace \
		test_sys_setprofile test_generators test_coroutines test_exceptions test_threading test_frame test_code test_compile \
		test_dis test_trace test_bdb test_audit test_capi test_grammar test_descr test_traceback
}
summary() { grep --extended-regexp '^(All )?[0-9]+ tests? |^Result' | paste --serial --delimiters=' '; }

remake() {
	rm Include/pydtrace_probes.h
	make --silent --jobs="$jobs" DTRACE="$dtrace"
}
