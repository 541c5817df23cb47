/* Two probes as SystemTap's macros make them: one has a semaphore, one has none. */
#include "semaphore.h"

int main(int argc, char **argv)
{
	hit(argc, 7);
	return plain(argv);
}
