"""Reads execution traces of MLCommons Chakra: an independent decoder of protobuf's wire format for the messages of
schema/protobuf/et_def.proto (GlobalMetadata, Node, AttributeProto), strict about types and ranges. A module of tests."""
import struct

NODE_TYPES = {4: "COMP_NODE", 5: "COMM_SEND_NODE", 6: "COMM_RECV_NODE", 7: "COMM_COLL_NODE"}
# Field: name, and how it is on the wire: v a varint, s a string, p packed varints, m a message.
NODE = {1: ("id", "v"), 2: ("name", "s"), 3: ("type", "v"), 4: ("ctrl_deps", "p"), 5: ("data_deps", "p"), 6: ("start_time_micros", "v"),
        7: ("duration_micros", "v"), 8: ("inputs", "m"), 9: ("outputs", "m"), 10: ("attr", "m")}
METADATA = {1: ("version", "s"), 2: ("attr", "m")}
ATTRIBUTE = {1: ("name", "s"), 2: ("doc_string", "s"), 3: ("double_val", "d"), 9: ("int64_val", "v"), 11: ("uint32_val", "v"),
             13: ("uint64_val", "v"), 27: ("bool_val", "v"), 29: ("string_val", "s")}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        assert shift <= 70, "a varint of over ten bytes"
        if not byte & 0x80:
            assert byte or shift == 7, "a varint with zeros behind it"
            return value, at


def fields(data, known):
    """(name, value) in their order; a field that the schema does not have fails."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        name, form = known[tag >> 3]
        if form == "v":
            assert tag & 7 == 0, name
            value, at = varint(data, at)
        elif form == "d":
            assert tag & 7 == 1, name
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        else:
            assert tag & 7 == 2, name
            size, at = varint(data, at)
            assert at + size <= len(data), name
            value, at = data[at:at + size], at + size
            value = value.decode("utf-8") if form == "s" else packed(value) if form == "p" else value
        yield name, value


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def attributes(pairs):
    found = {}
    for name, value in pairs:
        if name == "attr":
            attribute = dict(fields(value, ATTRIBUTE))
            values = [key for key in attribute if key.endswith("_val")]
            assert len(values) == 1, attribute
            found[attribute["name"]] = bool(attribute[values[0]]) if values[0] == "bool_val" else attribute[values[0]]
    return found


def read(data):
    """The metadata, and the nodes in the file's order, as dicts."""
    messages, at = [], 0
    while at < len(data):
        size, at = varint(data, at)
        assert at + size <= len(data), "a message is cut off"
        messages.append(data[at:at + size])
        at += size
    head = list(fields(messages[0], METADATA))
    nodes = []
    for message in messages[1:]:
        pairs = list(fields(message, NODE))
        node = {"data_deps": [], "ctrl_deps": [], "start_time_micros": 0, "duration_micros": 0}
        node.update({name: value for name, value in pairs if name != "attr"})
        node["attr"], node["type"] = attributes(pairs), NODE_TYPES[node["type"]]
        nodes.append(node)
    return {**dict(head), "attr": attributes(head)}, nodes
