# PostgreSQL compiled for arm64 on another machine, and run by an emulator: initdb, and a
# server of one process.
package=postgresql-15
cross=yes
programs=("$job/usr/local/pgsql/bin/postgres.arm64")
guarded=
suite="\`initdb\` and \`postgres --single\` under \`qemu-aarch64\`"

configure() {
	"$source/configure" --quiet --enable-dtrace --without-readline --without-zlib --with-system-tzdata=/usr/share/zoneinfo \
		--host=aarch64-linux-gnu CC=aarch64-linux-gnu-gcc CFLAGS=-O1
}

# What these two programs need.
parts="src/interfaces/libpq src/backend src/backend/utils/mb/conversion_procs src/backend/snowball src/pl/plpgsql/src src/timezone src/bin/initdb"
build() {
	local part
	for part in $parts; do
		make --silent --jobs="$jobs" --directory="$part"
	done
}

# initdb starts postgres, which the kernel cannot unless the emulator does it.
ready() {
	local part bin=$job/usr/local/pgsql/bin name
	for part in $parts; do
		make --silent --directory="$part" DESTDIR="$job" install
	done
	for name in initdb postgres; do
		mv "$bin/$name" "$bin/$name.arm64"
		printf '#!/bin/sh\nexec qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=%s -0 "$0" "$0.arm64" "$@"\n' "${bin%/bin}/lib" >"$bin/$name"
		chmod +x "$bin/$name"
	done
}

tests() {
	rm -rf "$job/data"
	"$job/usr/local/pgsql/bin/initdb" --no-sync --locale=C --pgdata="$job/data"
	"$job/usr/local/pgsql/bin/postgres" --single -D "$job/data" postgres <"/opt/programs/projects/postgresql.sql"
}
summary() { echo "$(grep --count '^	----$') rows"; }
