// Whether V8 joins pairs of vectors to 256 bits in this process (assembly/machine/joining.ts), for who wants to tell its user.

import { createMachine } from "./machine.ts";

/** Milliseconds that its compiler gets, in which it takes one or two. */
const MOST_MS = 100;

/** Whether it does; waits until its optimising compiler has seen the function by which that is seen. */
export async function joinsVectors(): Promise<boolean> {
  using machine = await createMachine({ threads: 1 });
  for (let ms = 0; ms < MOST_MS && !machine.joins; ms++) {
    machine.exports.lookForJoining!();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return machine.joins;
}
