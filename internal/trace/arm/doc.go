// Package arm arms the sites of processes: it chooses the form that a site gets, a jump to a trampoline or a breakpoint, raises semaphores,
// puts everything back, and copies to a child what its parent has.
package arm
