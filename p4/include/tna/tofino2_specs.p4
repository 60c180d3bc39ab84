// Widths of the second generation.

#ifndef _TOFINO2_SPECS_P4_
#define _TOFINO2_SPECS_P4_

#define QUEUE_ID_WIDTH 7
#define MIRROR_TYPE_WIDTH 4
#define MIRROR_ID_WIDTH 8
#include "tofino_ids.p4"

typedef MirrorType_t CloneId_t;
const bit<32> PORT_METADATA_SIZE = 192;

#endif
