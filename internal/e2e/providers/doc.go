// Package providers holds no code, only tests of what is made of provider files: headers are
// compiled in every standard by every compiler, and programs with them linked by every
// linker, with and without the object of semaphores, and traced. What SystemTap's script
// makes of the same file and source, as readelf and tracers see it, is what is compared with.
// TestScriptsProbes compares the two on random provider files; SDTCONVERT_ATTACK says how many.
package providers
