# Makes headers of provider files by both programs that are called dtrace, has sed do with
# them what the project's build does, compiles a source that uses all macros, and
# compares what readelf says of the notes. Is run in the folder of a project's sources:
#
#	header.sh SED OPTIONS FILE...
#
# Prints how many probes there are, and what is not as it has to be.
set -euo pipefail
sed=$1 options=$2
shift 2
[ "$sed" != - ] || sed=
[ "$options" != - ] || options=
declare -A dtrace=([theirs]=/usr/bin/dtrace [ours]=/opt/programs/bin/dtrace)

# uses prints a source with each macro of a header.
uses() {
	echo "#include \"$1\""
	echo "int fire(void);"
	echo "int fire(void)"
	echo "{"
	echo "	int n = 0;"
	awk '
		!/^#define [A-Za-z][A-Za-z0-9_]*\([a-z0-9, ]*\) \\$/ { next }
		{ sub(/^#define /, ""); sub(/ \\$/, ""); gsub(/arg/, "") }
		tolower($0) ~ /_enabled\(\)$/ { print "\tn += " $0 ";"; next }
		{ print "\t" $0 ";" }' "$1"
	echo "	return n;"
	echo "}"
}

# build VARIANT FILE makes the header and the object, and links them with the source.
build() {
	local dtrace=${dtrace[$1]} base
	base=$(basename "${2%.d*}")
	cd "$folder"
	# shellcheck disable=SC2086
	(cd "$sources" && "$dtrace" $options -h -s "$2" -o "$folder/$1/$base.h.tmp" && "$dtrace" $options -G -s "$2" -o "$folder/$1/$base.o")
	sed -e "$sed" "$1/$base.h.tmp" >"$1/$base.h"
	[ -e use.c ] || uses "$1/$base.h" | sed "s|\"$1/|\"|" >use.c
	gcc -O1 -fPIC -I"$1" -c -o "$1/use.o" use.c
	gcc -shared -o "$1/use.so" "$1/use.o" "$1/$base.o"
	readelf --notes --wide "$1/use.so" | sed -n 's/^.* Provider: /provider /p; s/^ *Name: /name /p; s/^ *Arguments: /arguments /p' >"$1/notes"
}

# strict compiles with the header of sdtconvert as C and as C++ and takes no warning.
strict() {
	local language
	for language in "c -std=gnu90" "c -std=c17" "c++ -std=c++11" "c++ -std=c++20"; do
		# shellcheck disable=SC2086
		gcc -x $language -Wall -Wextra -Wpedantic -Werror -O1 -Iours -c -o /dev/null use.c || echo "does not compile: $language"
	done
}

sources=$PWD
folder=$(mktemp --directory)
trap 'rm -rf "$folder"' EXIT
probes=0
said=
for file in "$@"; do
	rm -rf "${folder:?}"/*
	mkdir "$folder/ours" "$folder/theirs"
	cd "$sources"
	if ! (build ours "$file") >"$folder/wrong" 2>&1; then
		said+="$file: $(tail -n 1 "$folder/wrong"); "
		continue
	fi
	cd "$folder"
	said+=$(strict 2>&1 | tail -n 3)
	n=$(grep --count '^name' ours/notes || true)
	probes=$((probes + n))
	if ! (build theirs "$file") >"$folder/wrong" 2>&1; then
		said+="SystemTap's: $(grep --max-count=1 error "$folder/wrong"); "
	elif ! cmp --quiet ours/notes theirs/notes; then
		said+="other notes, SystemTap's are of $(grep --count '^name' theirs/notes || true) probes; "
	fi
done
echo "$probes	${said:-the same}"
