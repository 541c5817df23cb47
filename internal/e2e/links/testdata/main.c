/*
 * The executable of a program whose probes are all in a shared library:
 * program.c with its main renamed.
 */
int program_main(int argc, char **argv);

int main(int argc, char **argv)
{
	return program_main(argc, argv);
}
