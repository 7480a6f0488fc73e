"""Faults of daemons and of the wires between them; a log shows that each has bitten."""
import time

from hands import ALL, Hands, Outcome


class DaemonFaults(Hands):
    def _master_killed(self, _):
        return self._master_ends(lambda: self.cluster.master.kill())

    def _master_restarted(self, _):
        return self._master_ends(lambda: self.cluster.master.stop())

    def _master_ends(self, end):
        with self.master:
            in_switch = self._await_switch(ALL)
            marks = self._marks()
            end()
            recovery = self._over(ALL)
            self.cluster.start_master()
            return Outcome(self._one_says(r"\bmaster-(down|up)\b", marks), in_switch, recovery)

    def _master_stopped(self, lasts):
        with self.master:
            in_switch = self._await_switch(ALL)
            marks = self._marks()
            self._stopped(self.cluster.master.process, lasts + self._suspicion())
            recovery = self._over(ALL)
            return Outcome(self._one_says(r"\bmaster-down\b", marks, 5), in_switch, recovery)

    def _node_killed(self, node, _):
        return self._node_ends(node, lambda daemon: daemon.kill())

    def _node_restarted(self, node, _):
        return self._node_ends(node, lambda daemon: daemon.stop())

    def _node_ends(self, node, end):
        with self.nodes[node]:
            in_switch = self._await_switch(self._places(node))
            master = self.cluster.master
            mark = master.mark()
            end(self.cluster.nodes[node].daemon)
            recovery = self._over(self._places(node))
            self.cluster.nodes[node].start_connected()
            said = self._says(master, rf"\b(reported|suspect) node=n{node + 1}\b", mark)
            return Outcome(said, in_switch, recovery)

    def _node_stopped(self, node, lasts):
        with self.nodes[node]:
            return self._suspected(node, lambda: self._stopped(self.cluster.nodes[node].daemon.process,
                                                               lasts + self._suspicion()))

    def _both_killed(self, node, _):
        with self.master, self.nodes[node]:
            in_switch = self._await_switch(self._places(node))
            marks = self._marks()
            self.cluster.master.kill()
            self.cluster.nodes[node].daemon.kill()
            recovery = self._over(ALL)
            self.cluster.start_master()
            self.cluster.nodes[node].start_connected()
            marks[node] = (self.cluster.nodes[node].daemon, 0)
            return Outcome(self._one_says(r"\bmaster-up\b", marks), in_switch, recovery)

    # Wires.

    def _link_cut(self, node, _):
        with self.nodes[node]:
            in_switch = self._await_switch(self._places(node))
            daemon = self.cluster.nodes[node].daemon
            mark = daemon.mark()
            self.proxies[node].cut()
            recovery = self._over(self._places(node))
            bit = self._says(daemon, r"\bmaster-(down|up)\b", mark)
            return Outcome(bit, in_switch, recovery)

    def _link_stalled(self, node, lasts):
        def stall():
            self.proxies[node].hold()
            time.sleep(lasts + self._suspicion())
            self.proxies[node].let_go()
        with self.nodes[node]:
            return self._suspected(node, stall)

    def _suspected(self, node, strike):
        in_switch = self._await_switch(self._places(node))
        master, daemon = self.cluster.master, self.cluster.nodes[node].daemon
        at_master, at_node = master.mark(), daemon.mark()
        strike()
        recovery = self._over(self._places(node))
        suspect = rf"\bsuspect node=n{node + 1}\b"
        logs = [(daemon, at_node), (master, at_master)]
        if self.cluster.master is not master:  # another fault has struck meanwhile
            logs.append((self.cluster.master, 0))
        bit = self._one_says(rf"\bmaster-down\b|{suspect}", logs, 2)
        return Outcome(bit, in_switch, recovery)
