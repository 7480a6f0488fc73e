"""All kinds of faults by their names: how each strikes, how it ends, and what shows that it bit."""
from call_faults import CallFaults
from daemon_faults import DaemonFaults
from process_faults import ProcessFaults


class Faults(DaemonFaults, ProcessFaults, CallFaults):
    def strike(self, strike):
        """None: there was nothing to strike at."""
        method = getattr(self, "_" + strike.kind.replace("-", "_"))
        return method(*strike.target, strike.lasts)

    def stranger_on(self, places, since):
        return self.stays.any_on(places, since)
