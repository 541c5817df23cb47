/* Tests in each place where C++ takes an expression. */
#include <sdt.h>

SDT_PROBE_DECLARE(sem, , , both);

extern "C" int semaphores_cxx();

namespace {
bool initial = SDT_PROBE_ENABLED(sem, , , both);

bool passed(bool given = SDT_PROBE_ENABLED(sem, , , both))
{
	return given;
}

struct member {
	bool up = SDT_PROBE_ENABLED(sem, , , both);
};

template <class T> bool generic(T n)
{
	if (SDT_PROBE_ENABLED(sem, , , both)) {
		SDT_PROBE1(sem, , , both, n);
		return true;
	}
	return false;
}
}

inline bool shared(int n)
{
	auto test = [n] { return SDT_PROBE_ENABLED(sem, , , both) && n > 0; };
	return test();
}

/* How many say that it is up. */
extern "C" int semaphores_cxx()
{
	member m;
	return initial + passed() + m.up + generic(1) + generic('c') + shared(1);
}
