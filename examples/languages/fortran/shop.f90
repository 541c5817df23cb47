module probes
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine probe_placed(number, what) bind(C, name="__dtrace_probe_shop___placed")
      import :: c_int, c_char
      integer(c_int), value :: number
      character(kind=c_char), intent(in) :: what(*)
    end subroutine
    function placed_enabled() bind(C, name="__dtrace_isenabled_shop___placed") result(enabled)
      import :: c_int
      integer(c_int) :: enabled
    end function
    subroutine probe_sent(number, price) bind(C, name="__dtrace_probe_shop___sent")
      import :: c_int, c_int64_t
      integer(c_int), value :: number
      integer(c_int64_t), value :: price
    end subroutine
  end interface
end module

module shop
  use probes
  implicit none
contains
  function serve(orders) result(sum)
    character(*), intent(in) :: orders(:)
    integer(c_int64_t) :: sum, price
    integer(c_int) :: number
    sum = 0
    do number = 1, size(orders)
      if (placed_enabled() /= 0) call probe_placed(number, trim(orders(number)) // c_null_char)
      price = len_trim(orders(number)) * 7
      call probe_sent(number, price)
      sum = sum + price
    end do
  end function
end module

program main
  use shop
  print '("sum ", i0)', serve([character(8) :: "tea", "milk", "biscuits"])
end program
