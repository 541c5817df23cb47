provider interp {
    probe function__entry(const char *, const char *, int);
    probe line(const char *file, const char *name, int lineno);
    probe gc__start(int generation);
    probe import__find__load__done(const char *, int);
    probe audit(const char *, void *);
};

#pragma D attributes Evolving/Evolving/Common provider interp provider
#pragma D attributes Evolving/Evolving/Common provider interp module
#pragma D attributes Evolving/Evolving/Common provider interp function
#pragma D attributes Evolving/Evolving/Common provider interp name
#pragma D attributes Evolving/Evolving/Common provider interp args

#ifdef STACK_HELPER
dtrace:helper:ustack:
{
    this->frame = *(uintptr_t *)copyin(arg0 + 8, sizeof(uintptr_t));
    this->text = this->frame ? "@" : "";
}

dtrace:helper:ustack:
/this->text != ""/
{
    stringof(this->text);
}
#endif
