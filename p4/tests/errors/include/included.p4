// Included by macros.p4.

const bit<8> = 3;
