// TNA: the Tofino native architecture. __TARGET_TOFINO__ chooses the device: 1, the default, or 2.

#ifndef _TNA_P4_
#define _TNA_P4_

#if __TARGET_TOFINO__ == 2
#include "tofino2_specs.p4"
#else
#include "tofino1_specs.p4"
#endif
#include "tofino1_arch.p4"

#endif
