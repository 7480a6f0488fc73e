"""When somebody who is in no group had memory on a card."""
import threading
import time


class Stay:
    def __init__(self, place):
        self.place, self.since, self.until = place, None, None

    def may_begin(self):
        """Before each try to take memory: the one that succeeds began here."""
        self.since = time.monotonic()

    def is_over(self):
        self.until = time.monotonic()


class Stays:
    def __init__(self):
        self._stays = []
        self._lock = threading.Lock()

    def new(self, place):
        stay = Stay(place)
        with self._lock:
            self._stays.append(stay)
        return stay

    def forget(self, stay):
        with self._lock:
            self._stays.remove(stay)

    def any_on(self, places, since):
        """Whether one of them lasted until `since` or longer, on one of these cards."""
        with self._lock:
            return any(stay.place in places and stay.since is not None and (stay.until is None or stay.until >= since)
                       for stay in self._stays)
