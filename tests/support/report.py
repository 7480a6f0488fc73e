"""Runs the unittest cases of a module and tells tools/test about each: `report.main()`."""
import os
import signal
import sys
import unittest


class _Result(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        folder = os.environ.get("TIMESLICE_TEST_REPORT")
        name = f"{os.path.basename(sys.argv[0])}.{os.getpid()}"
        self._file = open(os.path.join(folder, name), "w") if folder else None
        self._say("exe", os.path.realpath(sys.argv[0]))

    def _say(self, result, name):
        if self._file:
            print(f"{result}\t{name}", file=self._file, flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        if _ended_by:
            self.stop()

    def addSuccess(self, test):
        super().addSuccess(test)
        self._say("passed", test.id())

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._say("failed", test.id())

    def addError(self, test, err):
        super().addError(test, err)
        self._say("failed", str(test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say("skipped", test.id())


_ended_by = None


def _end(number, _frame):
    """unittest takes it for the error of the test that runs, cleans up after it, and starts no other."""
    global _ended_by
    _ended_by = number
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    for number in (signal.SIGTERM, signal.SIGHUP):  # SIGINT is a KeyboardInterrupt already
        signal.signal(number, _end)
    runner = unittest.TextTestRunner(resultclass=_Result, verbosity=2)
    program = unittest.main(testRunner=runner, exit=False)
    if _ended_by:
        sys.exit(128 + _ended_by)
    sys.exit(not program.result.wasSuccessful())
