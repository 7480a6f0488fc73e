// The thread in every CUDA process that does what checkpoint calls of any process ask of it: it
// copies in this process's address space, whatever the other threads are at.
#pragma once

namespace simgpu {

class Driver;

void startHelper(Driver& driver);

}  // namespace simgpu
