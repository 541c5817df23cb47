/* libstdc++: https://gcc.gnu.org/onlinedocs/libstdc++/manual/debug.html; a type is a std::type_info */
provider libstdcxx {
	probe throw(void *object, struct type_info *type);
	probe rethrow(void *object, struct type_info *type);
	probe catch(void *object, struct type_info *type);
};
