/* Prints the size of each public struct and the offset of its last field, for the Python package.
 */
#include <stdio.h>
#include <timeslice/timeslice.h>

int main(void) {
  printf("JoinOptions %zu deadline_ms %zu\n", sizeof(ts_join_options),
         offsetof(ts_join_options, deadline_ms));
  printf("AcquireOptions %zu phase %zu\n", sizeof(ts_acquire_options),
         offsetof(ts_acquire_options, phase));
  printf("RawGrant %zu moved_bytes %zu\n", sizeof(ts_grant), offsetof(ts_grant, moved_bytes));
  printf("RawState %zu epoch %zu\n", sizeof(ts_state), offsetof(ts_state, epoch));
  return 0;
}
