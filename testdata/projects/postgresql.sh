# PostgreSQL: macros for types in the file, so -C; the header through sed; the object from
# those of all directories.
package=postgresql-15
programs=("$job/usr/local/pgsql/bin/postgres")
guarded=:postgresql:lwlock__

configure() { "$source/configure" --quiet --enable-dtrace --without-readline --without-zlib CFLAGS=-O2; }
build() { make --silent --jobs="$jobs"; }

# It is installed, so that it finds its files.
export LD_LIBRARY_PATH=$job/usr/local/pgsql/lib
ready() { make --silent DESTDIR="$job" install; }

# A server of one process does the same each time, with a copy of the same data.
fresh() {
	[ -e ../data ] || "$job/usr/local/pgsql/bin/initdb" --no-sync --locale=C --pgdata=../data
	rm -rf "$job/data"
	cp --archive ../data "$job/data"
}
job() { "$job/usr/local/pgsql/bin/postgres" --single -D "$job/data" postgres <"/opt/programs/projects/$project.sql"; }

suite="\`make check\`"
tests() { make --silent check; }
summary() { grep --only-matching --extended-regexp '(All )?[0-9]+ (of [0-9]+ )?tests (passed|failed)' | tail -n 1; }
