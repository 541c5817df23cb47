#[path = "../../../../include/rust/sdt.rs"]
mod sdt;

fn placed(number: i32, what: &str) {
    if sdt_enabled!(shop, placed) {
        let what = std::ffi::CString::new(what).unwrap();
        sdt_probe!(shop, placed, i32 = number, ptr = what.as_ptr());
    }
}
fn main() {
    let mut sum = 0;
    for (number, what) in (1..).zip(["tea", "milk", "biscuits"]) {
        placed(number, what);
        let price = what.len() as u64 * 7;
        sdt_probe!(shop, sent, i32 = number, u64 = price);
        sdt_probe!(shop, none);
        sum += price;
    }
    println!("sum {}", sum);
}
