// Tests that need something a machine may not have (a downloaded model, a GPU adapter, a program). Such
// a test is never dropped in silence: its name says what is absent and how to get it, `deno task test`
// lists and counts it, and under CI a skipped test is a failure.

/** What a test needs and whether it is there. */
export interface Need {
  /** The thing: "the model smollm2-135m", "a WebGPU adapter". */
  readonly what: string;
  /** Whether it was found. */
  readonly present: boolean;
  /** How to get it: a command, or what to install. */
  readonly remedy: string;
}

/**
 * Registers a test that runs only where its needs are met, and is counted as skipped elsewhere.
 *
 * @example
 * ```ts ignore
 * testWith([{ what: "git", present: hasGit, remedy: "apt install git" }], "git knows us", () => {});
 * ```
 */
export function testWith(
  needs: readonly Need[],
  name: string,
  fn: (t: Deno.TestContext) => void | Promise<void>,
): void {
  const absent = needs.filter(({ present }) => !present);
  const why = absent.map(({ what, remedy }) => `needs ${what}: ${remedy}`).join("; ");
  Deno.test({ name: why ? `${name} [${why}]` : name, ignore: absent.length > 0, fn });
}
