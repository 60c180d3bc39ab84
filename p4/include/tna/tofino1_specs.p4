// Widths of the first generation.

#ifndef _TOFINO1_SPECS_P4_
#define _TOFINO1_SPECS_P4_

#define QUEUE_ID_WIDTH 5
#define MIRROR_TYPE_WIDTH 3
#define MIRROR_ID_WIDTH 10
#include "tofino_ids.p4"

const bit<32> PORT_METADATA_SIZE = 64;

#endif
