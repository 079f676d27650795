// `deno task bench start [COMMIT]`: what a cold process of the npm package's bundle takes, beside the sources of a commit (a
// worktree of it is made and removed): the import alone, from the start of the process to the first token, and of that
// loading, beside reading the file, too. They take turns, and the least of many rounds counts: whatever else a machine does
// only adds.

import { readingMs } from "../cpu/reading.ts";
import { type Figure, machineName, ratioOf } from "../support/figures.ts";

/** What to measure. */
export interface StartOptions {
  /** The repository. */
  readonly root: string;
  /** Whose sources are the peer. */
  readonly commit: string;
  /** Path of a model. */
  readonly model: string;
  readonly rounds: number;
}

/** Milliseconds. */
interface Least {
  imported: number;
  loaded: number;
  first: number;
}

const nothingYet = (): Least => ({ imported: Infinity, loaded: Infinity, first: Infinity });

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(command, { args: [...args], cwd })
    .output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

/** Figures of import and first token. */
export async function* startBench(
  { root, commit, model, rounds }: StartOptions,
): AsyncGenerator<Figure> {
  await run(Deno.execPath(), ["task", "build", "package"], root);
  const folder = await Deno.makeTempDir();
  await run("git", ["worktree", "add", "--detach", folder, commit], root);
  try {
    const engines = { own: `${root}/dist/npm/dist/node/mod.js`, peer: `${folder}/mod.ts` };
    const least = { own: nothingYet(), peer: nothingYet() };
    let reading = Infinity;
    for (let round = 0; round < rounds; round++) {
      reading = Math.min(reading, readingMs(model));
      for (const name of ["own", "peer"] as const) {
        const program = ["run", "-A", "--no-check", `${root}/bench/start/first_token.ts`];
        const times = async (...more: readonly string[]) =>
          (await run(Deno.execPath(), [...program, engines[name], ...more], folder))
            .split(" ").map(Number) as [imported: number, loaded: number];
        const [imported] = await times();
        const start = performance.now();
        const [, loaded] = await times(model);
        const now: Least = { imported, loaded, first: performance.now() - start };
        for (const key of ["imported", "loaded", "first"] as const) {
          least[name][key] = Math.min(least[name][key], now[key]);
        }
      }
    }
    const figure = (title: string, value: number, peer: string, peerValue: number): Figure => ({
      ...{ bench: "start", case: `${title}, the bundle`, unit: "ms", value, peer, peerValue },
      ...{ ratio: ratioOf("ms", value, peerValue), share: null, machine: machineName() },
    });
    const sources = `sources of ${commit}`, { own, peer } = least;
    yield figure("import", own.imported, sources, peer.imported);
    yield figure("load", own.loaded, sources, peer.loaded);
    yield figure("load", own.loaded, "reading the file", reading);
    yield figure("process start to first token", own.first, sources, peer.first);
  } finally {
    await run("git", ["worktree", "remove", "--force", folder], root);
  }
}
