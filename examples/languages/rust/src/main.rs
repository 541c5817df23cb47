use std::ffi::CString;
use std::os::raw::{c_char, c_int};

extern "C" {
    fn __dtrace_probe_shop___placed(number: c_int, what: *const c_char);
    fn __dtrace_isenabled_shop___placed() -> c_int;
    fn __dtrace_probe_shop___sent(number: c_int, price: u64);
}

fn placed(number: i32, what: &str) {
    if unsafe { __dtrace_isenabled_shop___placed() } != 0 {
        let what = CString::new(what).unwrap();
        unsafe { __dtrace_probe_shop___placed(number, what.as_ptr()) }
    }
}

fn serve(orders: &[String]) -> u64 {
    let mut sum = 0;
    for (number, what) in (1..).zip(orders) {
        placed(number, what);
        let price = what.len() as u64 * 7;
        unsafe { __dtrace_probe_shop___sent(number, price) }
        sum += price;
    }
    sum
}

fn main() {
    let orders: Vec<String> = "tea milk biscuits".split(' ').map(String::from).collect();
    println!("sum {}", serve(&orders));
}
