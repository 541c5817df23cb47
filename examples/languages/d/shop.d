import std.stdio : writeln;
import std.string : toStringz;

extern (C) nothrow
{
    void __dtrace_probe_shop___placed(int number, const(char)* what);
    int __dtrace_isenabled_shop___placed();
    void __dtrace_probe_shop___sent(int number, ulong price);
}

ulong serve(string[] orders)
{
    ulong sum = 0;
    foreach (i, what; orders)
    {
        immutable number = cast(int) i + 1;
        if (__dtrace_isenabled_shop___placed())
            __dtrace_probe_shop___placed(number, what.toStringz);
        immutable price = what.length * 7;
        __dtrace_probe_shop___sent(number, price);
        sum += price;
    }
    return sum;
}

void main()
{
    writeln("sum ", serve(["tea", "milk", "biscuits"]));
}
