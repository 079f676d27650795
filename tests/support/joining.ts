// Scripts in processes of their own, with flags of V8 (wasm/assembly/machine/joining.ts).

import { assertEquals } from "@std/assert";
import { JOINING_FLAG } from "../../wasm/joining_flag.ts";

/** Joining, where V8 knows how, by code of the optimising compiler alone. */
export const JOINING = `${Deno.build.arch === "x86_64" ? `${JOINING_FLAG},` : ""}--no-liftoff`;

/** What a script writes; flags of V8 that this process has from its environment are not passed on. */
export async function runWithFlags(
  script: string,
  flags: string,
  args: readonly string[] = [],
): Promise<string> {
  const { DENO_V8_FLAGS: _, ...env } = Deno.env.toObject();
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", `--v8-flags=${flags}`, script, ...args],
    ...{ clearEnv: true, env },
  }).output();
  const [out, error] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  assertEquals(code, 0, error);
  return out!;
}

/** Of each set of operations that V8 joined while a script ran, how many pairs it has. */
export async function joinedNodes(script: string, args: readonly string[]): Promise<number[]> {
  const trace = await runWithFlags(script, `${JOINING},--trace-wasm-revectorize`, args);
  return [...trace.matchAll(/Decide(?:d)? to vectorize, (\d+) rev/g)].map(([, nodes]) =>
    Number(nodes)
  );
}
