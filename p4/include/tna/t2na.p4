// T2NA: the Tofino native architecture of the second generation.

#ifndef _T2NA_P4_
#define _T2NA_P4_

#include "tofino2_specs.p4"
#include "tofino2_arch.p4"

#endif
