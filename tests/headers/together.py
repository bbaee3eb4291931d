"""Do all headers compile in one file, so that no two names of the tree collide?

In C every header that is written for it, those of tests and benches included; in C++ the public ones. EXCEPTIONS are
left out, each for its reason.

usage: together.py c|c++ SOURCE_ROOT BUILD_ROOT PUBLIC_HEADER... -- COMPILER...
"""
import pathlib
import subprocess
import sys

import alone

EXCEPTIONS = {}


def headers_of(root, language, public):
    """Those that can stand together: C++ ones include what C cannot, and the other way round."""
    return list(public) if language == "c++" else sorted({*public, *alone.private_headers(root, language, public)})


def compile_together(root, build, headers, compiler, language):
    """What the compiler says. Outside headers are not ours to warn about."""
    text = "".join(f'#include "{header}"\n' for header in headers)
    flags = alone.STANDARDS["public" if language == "c++" else "private", language]
    done = subprocess.run([*compiler, "-x", language, *flags, *alone.FLAGS, "-I", root, "-I", build, "-I", build / "cli", "-"],
                          input=text, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main(language, root, build, *rest):
    root, build = pathlib.Path(root), pathlib.Path(build)
    public, compiler = rest[:rest.index("--")], list(rest[rest.index("--") + 1:])
    compiler += [word for folder in alone.outside_folders(build) for word in ("-isystem", folder)]
    headers = headers_of(root, language, public)
    faults = [f"{header} is excepted, and there is none" for header in EXCEPTIONS if not (root / header).is_file()]
    absent = alone.not_installed(root, headers, compiler, language)
    left_out = [header for header in headers
                if header in EXCEPTIONS or absent & {name for _, name in alone.includes(root, header)}]
    faults.append(compile_together(root, build, [x for x in headers if x not in left_out], compiler, language))
    print(f"{len(headers) - len(left_out)} headers together in {language}, left out: {', '.join(left_out) or 'none'}")
    print("\n".join(filter(None, faults)))
    return 1 if any(faults) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
