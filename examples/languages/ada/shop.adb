with Ada.Strings.Fixed; use Ada.Strings.Fixed;
with Ada.Text_IO;
with Interfaces.C;      use Interfaces.C;
with Probes;

procedure Shop is
   subtype Order is String (1 .. 8);
   type Order_List is array (int range <>) of Order;

   function Serve (Orders : Order_List) return long is
      Sum, Price : long := 0;
   begin
      for Number in Orders'Range loop
         if Probes.Placed_Enabled /= 0 then
            Probes.Placed (Number, To_C (Trim (Orders (Number), Ada.Strings.Right)));
         end if;
         Price := long (Index_Non_Blank (Orders (Number), Ada.Strings.Backward)) * 7;
         Probes.Sent (Number, Price);
         Sum := Sum + Price;
      end loop;
      return Sum;
   end Serve;

   Orders : constant Order_List (1 .. 3) := ("tea     ", "milk    ", "biscuits");
begin
   Ada.Text_IO.Put_Line ("sum" & long'Image (Serve (Orders)));
end Shop;
