# Ports of rack "memory": bfshell -b $PWD/THIS_FILE
bfrt.port.port.add(DEV_PORT=1, SPEED="BF_SPEED_100G", FEC="BF_FEC_TYP_NONE", PORT_ENABLE=True)
bfrt.port.port.add(DEV_PORT=2, SPEED="BF_SPEED_100G", FEC="BF_FEC_TYP_NONE", PORT_ENABLE=True)
bfrt.port.port.add(DEV_PORT=3, SPEED="BF_SPEED_25G", FEC="BF_FEC_TYP_NONE", PORT_ENABLE=True)
