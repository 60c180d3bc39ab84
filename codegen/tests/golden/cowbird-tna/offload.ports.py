# Ports of rack "offload": bfshell -b $PWD/THIS_FILE
bfrt.port.port.add(DEV_PORT=1, SPEED="BF_SPEED_10G", FEC="BF_FEC_TYP_NONE", PORT_ENABLE=True)
bfrt.port.port.add(DEV_PORT=2, SPEED="BF_SPEED_10G", FEC="BF_FEC_TYP_NONE", PORT_ENABLE=True)
bfrt.port.port.add(DEV_PORT=3, SPEED="BF_SPEED_10G", FEC="BF_FEC_TYP_NONE", PORT_ENABLE=True)
