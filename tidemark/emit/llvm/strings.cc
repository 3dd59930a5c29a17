// Instantiates the strings that LLVM uses here instead of in the standard library's shared object,
// so that their memory also comes from reserve.h.
#include <string>

template class std::basic_string<char>;
