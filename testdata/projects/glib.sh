# glib: three provider files, whose objects are made without any of the sources' and are
# linked into shared libraries.
package=glib2.0
programs=(glib/libglib-2.0.so.0 gobject/libgobject-2.0.so.0 gio/libgio-2.0.so.0)
guarded=
suite=

configure() { meson setup --buildtype=debugoptimized -Ddtrace=true -Dsystemtap=false -Dselinux=disabled -Dlibmount=disabled -Dtests=false . "$source"; }
build() { ninja -j"$jobs"; }

job() {
	echo text >"$job.file"
	GIO_USE_VFS=local ./gio/gio cat "$job.file"
	GIO_USE_VFS=local ./gio/gio list "$source/gobject"
	./gobject/gobject-query froots
}
