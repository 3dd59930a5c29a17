// The strings that LLVM uses, made here instead of in the standard library's shared object, so that
// their memory is LLVM's, too: see reserve.h.
#include <string>

template class std::basic_string<char>;
