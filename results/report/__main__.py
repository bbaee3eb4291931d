"""The report: a page of tables and figures from one results file.

usage: python3 results/report PIPECAST RESULTS.h5 -o FOLDER [--html FILE] [--summary]
       python3 results/report PIPECAST RESULTS.h5 --check FOLDER
"""
import argparse
import sys

import claims
import make
import paper
from document import plain
from results import Results
from failure import Failure


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Failure(f"{message}; see --help")


def arguments():
    parser = Parser(prog="python3 results/report",
                    description="Makes the page of tables and figures from a results file, or compares it with the one "
                    "that stands there.",
                    epilog="example: python3 results/report build/cli/pipecast reproduced/paper.h5 -o results/paper "
                    "--html reproduced/paper.html")
    parser.add_argument("pipecast", metavar="PIPECAST", help="the command, which reads the file and draws")
    parser.add_argument("results", metavar="RESULTS.h5", help="what `pipecast run -o` wrote")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("-o", dest="folder", metavar="FOLDER", help="writes FOLDER/README.md and its pictures")
    where.add_argument("--check", metavar="FOLDER",
                       help="compares with FOLDER/README.md; exit status 1 where it differs")
    parser.add_argument("--html", metavar="FILE", help="with -o: the same page as one file that needs no other")
    parser.add_argument("--summary", action="store_true", help="with -o: prints what the papers claim and what ours say")
    parsed = parser.parse_args()
    for name in ("html", "summary"):
        if getattr(parsed, name) and not parsed.folder:
            parser.error(f"--{name}: expected with -o")
    return parsed


def print_summary(results):
    for claim, ours, checks in claims.of_both(results):
        print(f"{plain(claims.verdict(checks)):7}  {plain(claim)}\n         {plain(ours)}")


def main():
    wanted = arguments()
    if wanted.check:
        difference = make.check(paper.build, wanted.pipecast, wanted.results, wanted.check)
        if difference:
            print(f"report: {difference}", file=sys.stderr)
        return 1 if difference else 0
    drawn, count = make.make(paper.build, wanted.pipecast, wanted.results, wanted.folder, wanted.html)
    if wanted.summary:
        print_summary(Results(wanted.pipecast, wanted.results))
    print(f"{wanted.folder}/{make.PAGE}: {count} pictures, {drawn} of them drawn anew", file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"report: {failure}", file=sys.stderr)
        sys.exit(failure.status)
    except KeyboardInterrupt:
        sys.exit(130)
