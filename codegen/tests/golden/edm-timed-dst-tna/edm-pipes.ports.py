# Ports of rack "edm-pipes": bfshell -b $PWD/THIS_FILE
# port 1: no port has 100000000 b/s
# port 2: no port has 100000000 b/s
# port 131: no port has 100000000 b/s
# port 260: no port has 100000000 b/s
# port 389: no port has 100000000 b/s
# port 6: no port has 100000000 b/s
