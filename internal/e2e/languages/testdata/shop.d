import std.stdio : writeln;
import std.string : toStringz;
import sdt;

ulong serve(string[] orders)
{
    ulong sum = 0;
    foreach (i, what; orders)
    {
        immutable number = cast(int) i + 1;
        if (enabled!("shop", "placed"))
            probe!("shop", "placed")(number, what.toStringz);
        immutable price = what.length * 7;
        probe!("shop", "sent")(number, price);
        sum += price;
    }
    return sum;
}

void main()
{
    writeln("sum ", serve(["tea", "milk", "biscuits"]));
}
