"""What drivers do to those who save and restore processes: simgpu misbehaves, and nothing is lost."""
import pathlib
import sys
import unittest

for folder in ("support", "e2e"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
import report  # noqa: E402
from cluster import MIB, Cluster  # noqa: E402
from puppet import Refused  # noqa: E402

BIG = 48 * MIB  # two of them do not fit a card of 64 MiB


class Restore(unittest.TestCase):
    def saved_beside(self, c):
        """Job a is saved, job b holds a card on which nothing of it lies."""
        a, b = c.job(job="a"), c.job(job="b")
        a.acquire()
        a.take_memory(BIG, 1)
        c.queue(b)
        a.ask("yield")
        b.hear_grant()
        return a, b

    def test_FF_A1_without_room_no_restore_is_tried_and_the_waiter_is_told_need_free_and_holders(self):
        with Cluster() as c:
            a, b = self.saved_beside(c)
            stranger = c.process()
            stranger.take_memory(40 * MIB, 3)
            a.say("acquire 500")
            b.ask("yield")
            with self.assertRaises(Refused) as no:
                a.hear()
            print(no.exception)
            print(c.tsctl("status").stdout)
            self.assertEqual(c.nodes[0].trace("restore", when="begin"), [])
            c.queue(a)
            print(c.tsctl("why", "a").stdout, c.tsctl("why", "g/a").stdout)
            stranger.end()
            self.assertEqual(a.hear_grant()["restored"], 1)
            self.assertEqual(a.ask("check 1"), "same")

    def test_FF_A1_a_restore_that_is_lost_for_good_is_not_tried_again_and_the_group_goes_on(self):
        with Cluster() as c:
            a, b = self.saved_beside(c)
            c.nodes[0].set_card(**{f"fail__restore@{a.pid}": "2", "sticky_restore_oom": "yes"})
            c.queue(a)
            b.ask("yield")
            with self.assertRaises(Refused) as no:
                a.hear()
            print(no.exception)
            print(c.tsctl("status").stdout)
            print(c.nodes[0].trace("restore"))
            b.acquire()


if __name__ == "__main__":
    report.main()
