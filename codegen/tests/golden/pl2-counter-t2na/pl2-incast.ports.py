# Ports of rack "pl2-incast": bfshell -b $PWD/THIS_FILE
# port 1: no port has 100000000 b/s
# port 2: no port has 100000000 b/s
# port 3: no port has 100000000 b/s
# port 4: no port has 100000000 b/s
# port 5: no port has 100000000 b/s
# port 6: no port has 100000000 b/s
