int none(int n) { return n; }
