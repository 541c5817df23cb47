/* What a job is about. Its probes are in a template and in a lambda. */
#include <sdt.h>

#include "work.h"

SDT_PROVIDER_DEFINE(work);
SDT_PROBE_DEFINE2(work, , , step, "long", "unsigned char");
SDT_PROBE_DEFINE1(work, , , expensive, "long");

namespace {

template <class Number> Number add(Number sum, unsigned char n)
{
	SDT_PROBE2(work, , , step, sum, n);
	return sum + n;
}

} // namespace

extern "C" long work(long cost)
{
	const auto warn = [](long n) {
		if (SDT_PROBE_ENABLED(work, , , expensive))
			SDT_PROBE1(work, , , expensive, n);
	};
	long sum = 0;

	if (cost > 1000)
		warn(cost);
	for (long i = 0; i < cost; i++)
		sum = add(sum, static_cast<unsigned char>(i));
	return sum;
}
