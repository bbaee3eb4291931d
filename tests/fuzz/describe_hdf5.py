#!/usr/bin/env python3
"""Makes seeds of HDF5 files: their description for fake_hdf5.h. Needs h5py.

    python3 tests/fuzz/describe_hdf5.py RESULTS.h5 OUT [NAME...]

With names, of the groups and datasets of the root's groups only those: `traces/1 runs/run`. Attributes that nobody reads (unit,
description and the like) are left out.
"""

import struct
import sys

import h5py
import numpy

END, GROUP, DATASET, ATTRIBUTE = range(4)
INTEGER, REAL, TEXT, ENUM, VARIABLE_TEXT, COMPOUND = range(6)
DATA_MAX = 128
UNREAD = {"unit", "description", "missing", "CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST"}


def sort_of(type_id):
    """The class of an HDF5 type, and whether it is UTF-8."""
    if isinstance(type_id, h5py.h5t.TypeStringID):
        utf8 = type_id.get_cset() == h5py.h5t.CSET_UTF8
        return (VARIABLE_TEXT if type_id.is_variable_str() else TEXT), utf8
    if isinstance(type_id, h5py.h5t.TypeEnumID):
        return ENUM, False
    if isinstance(type_id, h5py.h5t.TypeIntegerID):
        return INTEGER, False
    return (REAL if isinstance(type_id, h5py.h5t.TypeFloatID) else COMPOUND), False


def shape_of(type_id, shape, layout, data, stored):
    sort, utf8 = sort_of(type_id)
    record = struct.pack("<BHB", sort | utf8 << 3 | layout << 4, min(type_id.get_size(), 65535), len(shape))
    for side in shape:
        record += struct.pack("<I", side)
    return record + struct.pack("<BH", min(stored // 16, 255), len(data)) + data


def attributes_of(thing):
    made = b""
    for name in sorted(thing.attrs, reverse=True):
        if name in UNREAD:
            continue
        attribute = h5py.h5a.open(thing.id, name.encode())
        value = thing.attrs[name]
        data = value.encode() if isinstance(value, str) else numpy.asarray(value).tobytes()
        made += bytes([ATTRIBUTE]) + name.encode() + b"\0" + shape_of(attribute.get_type(), (), 0, data, 0)
    return made


def describe(name, thing, wanted):
    path = thing.name.strip("/")
    if wanted and path.count("/") == 1 and path not in wanted:
        return b""
    link = name.encode() + b"\0"
    if isinstance(thing, h5py.Dataset):
        data = thing[()].tobytes() if thing.size else b""
        size = thing.id.get_type().get_size()
        if sort_of(thing.id.get_type())[0] != TEXT:  # names are looked at one by one
            data = data[:max(size, DATA_MAX // size * size)]  # from there on they repeat
        layout = 2 if thing.chunks else 0
        return bytes([DATASET]) + link + shape_of(thing.id.get_type(), thing.shape, layout, data, thing.id.get_storage_size()) + \
            attributes_of(thing)
    inside = b"".join(describe(key, thing[key], wanted) for key in thing)
    return bytes([GROUP]) + link + attributes_of(thing) + inside + bytes([END])


def main():
    path, out, *wanted = sys.argv[1:]
    with h5py.File(path, "r") as file, open(out, "wb") as seed:
        seed.write(b"\0\0" + attributes_of(file) + b"".join(describe(key, file[key], wanted) for key in file))


if __name__ == "__main__":
    main()
