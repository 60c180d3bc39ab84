"""A P4Runtime session: arbitration, writes that can be undone, reads, packets."""

import queue
import threading

import grpc
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc

TIMEOUT_S = 10


class Refused(Exception):
    """A call that the switch refused, with its reasons."""


class Session:
    """A controller that is the switch's primary."""

    def __init__(self, addr, device_id, election_id=1):
        self.device_id, self.election_id = device_id, election_id
        options = [("grpc.max_receive_message_length", 64 << 20)]
        self.channel = grpc.insecure_channel(addr, options=options)
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.requests, self.packets, self.others = queue.Queue(), queue.Queue(), queue.Queue()
        hello = p4runtime_pb2.StreamMessageRequest()
        hello.arbitration.device_id = device_id
        hello.arbitration.election_id.low = election_id
        self.requests.put(hello)
        self.stream = self.stub.StreamChannel(iter(self.requests.get, None))
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()
        answer = self.others.get(timeout=TIMEOUT_S)
        if not isinstance(answer, p4runtime_pb2.StreamMessageResponse) or answer.arbitration.status.code != 0:
            self.close()
            raise Refused(f"not primary of device {device_id} at {addr}: {answer}")

    def listen(self):
        try:
            for message in self.stream:
                (self.packets if message.HasField("packet") else self.others).put(message)
        except grpc.RpcError as error:
            self.others.put(error)

    def close(self):
        self.requests.put(None)
        self.stream.cancel()
        self.reader.join()
        self.channel.close()

    def request(self, kind):
        request = kind(device_id=self.device_id)
        request.election_id.low = self.election_id
        return request

    def install(self, info, device_config):
        """Installs a program; the switch's state is cleared."""
        request = self.request(p4runtime_pb2.SetForwardingPipelineConfigRequest)
        request.action = p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(info)
        request.config.p4_device_config = device_config
        self.stub.SetForwardingPipelineConfig(request, timeout=60)

    def write(self, updates):
        request = self.request(p4runtime_pb2.WriteRequest)
        request.updates.extend(updates)
        try:
            self.stub.Write(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            raise Refused(f"{len(updates)} updates: {error.code().name}: {error.details()}") from error

    def read(self, entity):
        """All results of a read of one entity."""
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id, entities=[entity])
        return [found for answer in self.stub.Read(request, timeout=TIMEOUT_S) for found in answer.entities]

    def packet_out(self, payload, metadata):
        """`metadata`: pairs of a field's id and its value."""
        request = p4runtime_pb2.StreamMessageRequest()
        request.packet.payload = payload
        for number, value in metadata:
            field = request.packet.metadata.add(metadata_id=number)
            field.value = value.to_bytes((max(value.bit_length(), 1) + 7) // 8, "big")
        self.requests.put(request)

    def packet_in(self, timeout_s=2.0):
        """The next packet, or None."""
        try:
            return self.packets.get(timeout=timeout_s).packet
        except queue.Empty:
            return None
