int broken(int n) { return m; }
