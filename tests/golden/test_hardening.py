"""What meson.build asks of compiler and linker is in the files that are run: read from their ELF headers.

usage: test_hardening.py FORTIFIED FILE...     FORTIFIED: 1 where the build checks the C library's functions, else 0
"""
import os
import pathlib
import struct
import sys
import unittest

FORTIFIED, FILES = sys.argv[1] == "1", sys.argv[2:]
PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 2, 3, 0x6474E551, 0x6474E552
DT_NULL, DT_TEXTREL, DT_FLAGS, DT_FLAGS_1 = 0, 22, 30, 0x6FFFFFFB
SHT_DYNSYM = 11
DF_BIND_NOW, DF_1_NOW, DF_1_PIE, ET_DYN, PF_X, PF_W = 8, 1, 0x08000000, 3, 1, 2


class Elf:
    """A 64-bit little-endian ELF file (System V ABI, chapters 4 and 5), as far as the tests ask."""

    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        assert self.bytes[:6] == b"\x7fELF\x02\x01", path
        (self.type, _, _, _, programs, sections, _, _, size, count, section_size, section_count, _) = struct.unpack_from(
            "<HHIQQQIHHHHHH", self.bytes, 16)
        self.programs = [struct.unpack_from("<IIQQQQQQ", self.bytes, programs + size * i) for i in range(count)]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, sections + section_size * i) for i in range(section_count)]

    def program(self, kind):
        return next((entry for entry in self.programs if entry[0] == kind), None)

    def dynamic(self):
        _, _, offset, _, _, size, _, _ = self.program(PT_DYNAMIC)
        pairs = struct.iter_unpack("<QQ", self.bytes[offset:offset + size // 16 * 16])
        found = {}
        for tag, value in pairs:
            if tag == DT_NULL:
                break
            found[tag] = value
        return found

    def text(self, table, offset):
        start = self.sections[table][4] + offset
        return self.bytes[start:self.bytes.index(b"\0", start)].decode()

    def imports(self):
        """The symbols that others have."""
        table = next(section for section in self.sections if section[1] == SHT_DYNSYM)
        symbols = struct.iter_unpack("<IBBHQQ", self.bytes[table[4]:table[4] + table[5]])
        return {self.text(table[6], name) for name, _, _, section, _, _ in symbols if section == 0 and name}


class Hardening(unittest.TestCase):
    def check_each(self, check):
        for path in FILES:
            with self.subTest(file=os.path.basename(path)):
                check(Elf(path))

    def test_position_independent(self):
        def check(elf):
            self.assertEqual(elf.type, ET_DYN)
            if elf.program(PT_INTERP):
                self.assertTrue(elf.dynamic().get(DT_FLAGS_1, 0) & DF_1_PIE)
            self.assertNotIn(DT_TEXTREL, elf.dynamic())
        self.check_each(check)

    def test_relocations_are_read_only(self):
        """Full RELRO: all symbols are bound at the start, and the table is write-protected then."""
        def check(elf):
            dynamic = elf.dynamic()
            self.assertIsNotNone(elf.program(PT_GNU_RELRO))
            self.assertTrue(dynamic.get(DT_FLAGS, 0) & DF_BIND_NOW or dynamic.get(DT_FLAGS_1, 0) & DF_1_NOW, dynamic)
        self.check_each(check)

    def test_nothing_is_writable_and_executable(self):
        def check(elf):
            stack = elf.program(PT_GNU_STACK)
            self.assertIsNotNone(stack)
            self.assertFalse(stack[1] & PF_X)
            self.assertEqual([entry for entry in elf.programs if entry[1] & PF_X and entry[1] & PF_W], [])
        self.check_each(check)

    def test_stack_protector(self):
        self.check_each(lambda elf: self.assertIn("__stack_chk_fail", elf.imports()))

    def test_fortified(self):
        """In place of the C library's functions those that know the size, where there are any."""
        if not FORTIFIED:
            self.skipTest("not optimized, or sanitized")

        def check(elf):
            checked, plain = elf.imports() & {"__snprintf_chk", "__vsnprintf_chk"}, elf.imports() & {"snprintf", "vsnprintf"}
            self.assertTrue(checked or not plain, plain)
        self.check_each(check)
        self.assertIn("__vsnprintf_chk", Elf(FILES[0]).imports())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
