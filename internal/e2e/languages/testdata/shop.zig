const sdt = @import("sdt");
extern fn printf(format: [*:0]const u8, ...) c_int;

fn serve(orders: []const [:0]const u8) u64 {
    var sum: u64 = 0;
    for (orders, 0..) |what, i| {
        const number: i32 = @intCast(i + 1);
        if (sdt.enabled("shop", "placed"))
            sdt.probe("shop", "placed", .{ number, what.ptr });
        const price = what.len * 7;
        sdt.probe("shop", "sent", .{ number, price });
        sum += price;
    }
    return sum;
}

pub export fn main() c_int {
    _ = printf("sum %lu\n", serve(&.{ "tea", "milk", "biscuits" }));
    return 0;
}
