int plain = 1;
