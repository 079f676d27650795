// `deno task bench start [COMMIT]`: what a cold process of the npm package's bundle takes, beside the sources of a commit (a
// worktree of it is made and removed): the import alone, and from the start of the process to the first token. The two
// take turns, and the least of many rounds counts: whatever else a machine does only adds.

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

interface Least {
  imported: number;
  first: number;
}

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
    const least: Record<keyof typeof engines, Least> = {
      own: { imported: Infinity, first: Infinity },
      peer: { imported: Infinity, first: Infinity },
    };
    for (let round = 0; round < rounds; round++) {
      for (const name of ["own", "peer"] as const) {
        const args = ["run", "-A", "--no-check", `${root}/bench/start/first_token.ts`];
        const imported = Number(await run(Deno.execPath(), [...args, engines[name]], folder));
        const start = performance.now();
        await run(Deno.execPath(), [...args, engines[name], model], folder);
        least[name].imported = Math.min(least[name].imported, imported);
        least[name].first = Math.min(least[name].first, performance.now() - start);
      }
    }
    const cases = [["import", "imported"], ["process start to first token", "first"]] as const;
    for (const [title, key] of cases) {
      const [value, peerValue] = [least.own[key], least.peer[key]];
      yield {
        ...{ bench: "start", case: `${title}, the bundle`, unit: "ms", value },
        ...{ peer: `sources of ${commit}`, peerValue, ratio: ratioOf("ms", value, peerValue) },
        ...{ share: null, machine: machineName() },
      };
    }
  } finally {
    await run("git", ["worktree", "remove", "--force", folder], root);
  }
}
