// The floor of a reconnect: as many processes, raw sockets, the same round trips, and nothing else.
#pragma once

namespace ts::bench {

// `peers` processes connect at once to one that listens, exchange a greeting, send `reportBytes`
// and hear that they are in. Milliseconds from the start until the last is in.
double rawReturn(int peers, int reportBytes);

}  // namespace ts::bench
