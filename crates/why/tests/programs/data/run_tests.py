# Runs one module of Python's own test suite and prints the result of each test,
# sorted. What the tests themselves print goes nowhere: it holds times and pids.
import os
import resource
import sys
import unittest

results = []


class Result(unittest.TestResult):
    def addSuccess(self, test):
        results.append((test.id(), "ok"))

    def addError(self, test, error):
        results.append((test.id(), "ERROR\n" + self._exc_info_to_string(error, test)))

    def addFailure(self, test, error):
        results.append((test.id(), "FAIL\n" + self._exc_info_to_string(error, test)))

    def addSkip(self, test, reason):
        results.append((test.id(), "skipped"))

    def addExpectedFailure(self, test, error):
        results.append((test.id(), "expected failure"))

    def addUnexpectedSuccess(self, test):
        results.append((test.id(), "unexpected success"))

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.addFailure(subtest, error)


if __name__ == "__main__":
    # Children of some tests look at every descriptor that they might have.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
    answer = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    from test import support

    support.verbose = 0
    unittest.defaultTestLoader.loadTestsFromName("test." + sys.argv[1])(Result())
    with os.fdopen(answer, "w") as out:
        for name, result in sorted(results):
            out.write(f"{name}: {result}\n")
