// Work that takes seconds, cut into steps: a generator that yields between them, so that whoever runs it can let
// events through and stop. What comes out does not depend on who looks in between.

/** Work in steps, the last of which returns the result. */
export type Steps<T> = Generator<void, T, void>;
