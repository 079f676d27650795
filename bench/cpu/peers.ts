// Peers of the CPU bench and how they are started. What they need lies in a folder outside the repository,
// pinned; nobody but this bench fetches it. A peer that cannot be had on a machine is named as absent,
// never left out silently.

import { succeeds } from "../../tools/support/children.ts";
import { benchCache } from "../support/bench_cache.ts";

const PACKAGES: Readonly<Record<string, string>> = {
  "@wllama/wllama": "3.13.0",
  "playwright-core": "1.65.0",
};
const LLAMA_CPP = "llama.cpp (node-llama-cpp 3.21.1)";
const LLAMA_CPP_AVX2 = "llama.cpp, AVX2 build";
/** Name of wllama, with its version. */
export const WLLAMA = `wllama ${PACKAGES["@wllama/wllama"]} in Chromium`;
const BROWSERS = ["chromium", "chromium-browser", "google-chrome"];

/** How a process is to be started. */
export interface Start {
  readonly path: string;
  readonly threads: number;
  readonly context: number;
  /** Sessions beside each other. */
  readonly sequences: number;
}

/** What a peer may be asked for. */
export type CaseWork = "prefill" | "decode" | "batch" | "busy" | "memory" | "start";

/** A peer that is there. */
export interface Peer {
  readonly name: string;
  /** What it is not asked for, and why. */
  readonly refuses: Readonly<Partial<Record<CaseWork, string>>>;
  /** Whether it takes tokens; else text, which random models have none of. */
  readonly takesTokens: boolean;
  /** Most tokens of a context that it is asked for: a slow peer would take the rest of the day. */
  readonly longest: number;
  /** Whether a figure of it may come from one round, where rounds take long: no drift makes up for its distance. */
  readonly isFarBehind: boolean;
  /** Arguments of `deno run`. */
  command(start: Start): string[];
}

const PLAIN = ["--no-lock", "--no-config"];

const llamaCpp: Peer = {
  name: LLAMA_CPP,
  refuses: {},
  takesTokens: true,
  longest: Infinity,
  isFarBehind: false,
  command: ({ path, threads, context, sequences }) => [
    ...PLAIN,
    ...["bench/cpu/llama_cpp.ts", path, `${threads}`, `${context}`, `${sequences}`],
  ],
};

/** What llama.cpp reaches on processors before those with AVX-512, AMX or VNNI, measured on this one. */
const llamaCppAvx2: Peer = {
  ...llamaCpp,
  name: LLAMA_CPP_AVX2,
  refuses: {
    busy: "what happens to its threads is the same in every build",
    memory: "it takes what the other build takes",
    start: "it reads as the other build reads",
  },
  longest: 1024,
  command: (start) => [...llamaCpp.command(start), "haswell"],
};

/** Whether llama.cpp has a better build for this processor than that for AVX2. */
async function goesBeyondAvx2(): Promise<boolean> {
  if (Deno.build.os !== "linux" || Deno.build.arch !== "x86_64") return false;
  const facts = await Deno.readTextFile("/proc/cpuinfo").catch(() => "");
  const flags = new Set(/^flags\s*:(.*)$/m.exec(facts)?.[1]?.trim().split(/\s+/));
  return flags.has("avx2") && ["avx512f", "avx_vnni", "amx_int8"].some((flag) => flags.has(flag));
}

function wllama(packages: string, chromium: string): Peer {
  return {
    name: WLLAMA,
    refuses: {
      batch: "its API has no sequences beside each other",
      busy: "a token takes it two seconds then",
      memory: "it is a part of a browser's process",
    },
    takesTokens: false,
    longest: 600,
    isFarBehind: true,
    command: ({ path, threads, context }) => [
      ...PLAIN,
      "--node-modules-dir=manual",
      ...["bench/cpu/wllama.ts", path, `${threads}`, `${context}`, packages, chromium],
    ],
  };
}

/** The peers of this machine; the others are named on standard error. */
export async function preparePeers(): Promise<readonly Peer[]> {
  const absent = (name: string, why: string) => console.error(`absent: ${name}, ${why}`);
  const peers: Peer[] = [];
  if (await succeeds(Deno.execPath(), ["cache", ...PLAIN, "bench/cpu/llama_cpp.ts"])) {
    peers.push(llamaCpp);
    if (await goesBeyondAvx2()) peers.push(llamaCppAvx2);
    else absent(LLAMA_CPP_AVX2, "llama.cpp has no better build for this processor");
  } else absent(LLAMA_CPP, "its package cannot be fetched");
  const chromium = await findBrowser();
  if (!chromium) absent(WLLAMA, `there is no ${BROWSERS.join(", ")}`);
  else {
    const packages = await installPackages();
    if (packages) peers.push(wllama(packages, chromium));
    else absent(WLLAMA, "its packages cannot be installed");
  }
  return peers;
}

/** The folder with the packages of wllama, installed at the first call; undefined where they are not to be had. */
export async function installPackages(): Promise<string | undefined> {
  const folder = await benchCache("cpu");
  const manifest = JSON.stringify({ dependencies: PACKAGES });
  const marker = `${folder}/installed.json`;
  if (await Deno.readTextFile(marker).catch(() => "") === manifest) return folder;
  await Deno.writeTextFile(`${folder}/package.json`, manifest);
  const installed = await succeeds(
    Deno.execPath(),
    ["install", "--node-modules-dir=manual"],
    folder,
  );
  if (!installed) return undefined;
  await Deno.writeTextFile(marker, manifest);
  return folder;
}

/** Path of the system's Chromium. */
export async function findBrowser(): Promise<string | undefined> {
  for (const name of BROWSERS) {
    if (!await succeeds(name, ["--version"])) continue;
    const { stdout } = await new Deno.Command("which", { args: [name] }).output();
    return new TextDecoder().decode(stdout).trim();
  }
  return undefined;
}
