# glib: three provider files, whose objects are made without any of the sources' and are
# linked into shared libraries.
package=glib2.0
programs=(glib/libglib-2.0.so.0 gobject/libgobject-2.0.so.0 gio/libgio-2.0.so.0)
guarded=
suite=

configure() { meson setup --buildtype=debugoptimized -Ddtrace=true -Dsystemtap=false -Dselinux=disabled -Dlibmount=disabled -Dtests=false . "$source"; }
build() { ninja -j"$jobs"; }

# Not what starts a thread, which may or may not come to run before the program ends.
job() {
	export GIO_USE_VFS=local
	rm -rf "$job.directory"
	./gio/gio mkdir "$job.directory"
	echo text >"$job.directory/file"
	./gio/gio cat "$job.directory/file"
	./gio/gio copy "$job.directory/file" "$job.directory/copy"
	./gio/gio rename "$job.directory/copy" other
	./gio/gio remove "$job.directory/other"
	./gobject/gobject-query froots
}

# Ninja makes again what comes of another command.
remake() {
	sed -i "s|/opt/programs/bin/dtrace|$dtrace|g" build.ninja
	ninja -j"$jobs"
}
