# memcached, and a client that is a shell. Threads that look after it do it when they like.
package=memcached
programs=(memcached)
guarded=

configure() {
	cp -r --preserve=timestamps "$source/." . # or make wants to run the autotools
	./configure --quiet --enable-dtrace
}
build() { make --silent --jobs="$jobs"; }

job() {
	./memcached --listen=127.0.0.1 --port=11299 --threads=1 --extended=no_lru_crawler,no_lru_maintainer &
	until exec 4<>/dev/tcp/127.0.0.1/11299; do sleep 0.1; done 2>/dev/null
	for ((i = 0; i < 50; i++)); do
		printf 'set key%d 0 0 5\r\nvalue\r\nget key%d\r\nget none%d\r\n' "$i" "$i" "$i"
		printf 'incr key%d 1\r\nappend key%d 0 0 1\r\nx\r\ndelete key%d\r\n' "$i" "$i" "$i"
	done >&4
	printf 'quit\r\n' >&4
	cat <&4
	kill %1
	wait %1 || true
}

suite="\`testapp\` and tests of \`t\`"
tests() {
	make --silent testapp memcached-debug sizes
	./testapp
	prove t/{basic,binary,cas,expirations,flags,getset,incrdecr,issue_*,multiversioning,noreply,stats*,touch,verbosity}.t
}
summary() { awk '/^ok/ { n++ } /^Files=/ { f = $1 " " $2 } END { print n " of testapp and " f }'; }
