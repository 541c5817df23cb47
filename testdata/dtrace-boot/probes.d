shop$target:::order-placed { printf("%s order-placed %d %s\n", probefunc, args[0], copyinstr(arg1)); }
shop$target:::parcel
{
	printf("%s parcel %d %d %d %s %d %d %d\n", probefunc, args[0], args[1], args[2], copyinstr(arg3), args[4], args[5], args[6]);
}
shop$target:::weighed { printf("%s weighed %d %d\n", probefunc, args[WEIGHT], args[OTHER]); }
shop$target:::tail { printf("%s tail %d\n", probefunc, args[0]); }
shop$target:::done { printf("%s done\n", probefunc); }
