/*
 * The probes of SDT(9)'s examples, defined and fired. -DTRANSLATED: with the
 * translated type, which the manual gives to a probe of the same name.
 */
#include <stddef.h>

#include <sdt.h>

struct ip;
struct ip6_hdr;
struct icmp;
struct packet {
	int interface;
	void *header;
};

SDT_PROVIDER_DECLARE(icmp);
SDT_PROVIDER_DEFINE(icmp);
SDT_PROVIDER_DEFINE(ip);
SDT_PROBE_DEFINE1(icmp, , unreach, pkt__receive,
    "struct icmp *");
#ifdef TRANSLATED
SDT_PROBE_DEFINE1_XLATE(ip, , , receive, "struct icmp *",
    "struct icmp_hdr_dt *");
#else
SDT_PROBE_DEFINE3(ip, , , receive, "struct ifnet *",
    "struct ip *", "struct ip6_hdr *");
#endif

int ip_input(struct packet *m);
int ip6_input(struct packet *m);
int headertest_c(void);
int headertest_cxx(void);

__attribute__((noinline)) int ip_input(struct packet *m)
{
	struct ip *ip = (struct ip *)m->header;

	SDT_PROBE3(ip, , , receive, &m->interface, ip, NULL);
	return m->interface;
}

__attribute__((noinline)) int ip6_input(struct packet *m)
{
	struct ip6_hdr *ip6 = (struct ip6_hdr *)m->header;

	SDT_PROBE3(ip, , , receive, &m->interface, NULL, ip6);
	return m->interface;
}

int headertest_c(void)
{
	struct packet m = { 0, NULL };
	struct icmp *header = (struct icmp *)m.header;

	SDT_PROBE1(icmp, , unreach, pkt__receive, header);
	return ip_input(&m) + ip6_input(&m);
}

int headertest_cxx(void)
{
	return 0;
}
