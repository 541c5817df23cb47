/* The tests need nothing of FreeBSD's. */
