with Interfaces.C; use Interfaces.C;

package Probes is
   procedure Placed (Number : int; What : char_array)
     with Import, Convention => C, External_Name => "__dtrace_probe_shop___placed";
   function Placed_Enabled return int
     with Import, Convention => C, External_Name => "__dtrace_isenabled_shop___placed";
   procedure Sent (Number : int; Price : long)
     with Import, Convention => C, External_Name => "__dtrace_probe_shop___sent";
end Probes;
