/* ----------
 *	Probes of a database, whose types are known to its C sources alone.
 * ----------
 */
#define Oid unsigned int
#define LocalId unsigned int
#define Mode int
#define Flag unsigned char

provider store {

	probe transaction__start(LocalId);
	probe lock__wait__start(const char *, Mode);
	probe query__parse__start(const char *);
	probe buffer__read__start(int, Block, Oid, Oid, Oid, int, Flag);
	probe buffer__read__done(int, Block, Oid, Oid, Oid, int, Flag, Flag);
	probe checkpoint__start(int);
	probe twophase__checkpoint__start();
};
