# bmake reads this first; the rules are in bsd.kmod.mk.
