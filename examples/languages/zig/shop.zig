extern fn __dtrace_probe_shop___placed(number: c_int, what: [*:0]const u8) void;
extern fn __dtrace_isenabled_shop___placed() c_int;
extern fn __dtrace_probe_shop___sent(number: c_int, price: u64) void;
extern fn printf(format: [*:0]const u8, ...) c_int;

fn serve(orders: []const [:0]const u8) u64 {
    var sum: u64 = 0;
    for (orders, 0..) |what, i| {
        const number = @as(c_int, @intCast(i + 1));
        if (__dtrace_isenabled_shop___placed() != 0)
            __dtrace_probe_shop___placed(number, what.ptr);
        const price = what.len * 7;
        __dtrace_probe_shop___sent(number, price);
        sum += price;
    }
    return sum;
}

pub export fn main() c_int {
    const orders = [_][:0]const u8{ "tea", "milk", "biscuits" };
    _ = printf("sum %lu\n", @as(c_ulong, serve(&orders)));
    return 0;
}
