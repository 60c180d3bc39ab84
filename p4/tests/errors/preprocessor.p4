// Mistakes the preprocessor finds.
#include "missing.p4"
#include missing
#define F(a, b) a + b
#if UNKNOWN +
#endif
const bit<8> A = F(1);
#if defined(
#endif
#error this is the end
#frobnicate
#else
#ifdef OPEN
/* open too
