// Peers of the CPU bench and how they are started. What they need lies in a folder outside the repository,
// pinned; nobody but this bench fetches it. A peer that cannot be had on a machine is named as absent,
// never left out silently.

const PACKAGES: Readonly<Record<string, string>> = {
  "@wllama/wllama": "3.13.0",
  "playwright-core": "1.65.0",
};
const LLAMA_CPP = "llama.cpp (node-llama-cpp 3.21.1)";
const WLLAMA = `wllama ${PACKAGES["@wllama/wllama"]} in Chromium`;
const BROWSERS = ["chromium", "chromium-browser", "google-chrome"];

/** How a process is to be started. */
export interface Start {
  readonly path: string;
  readonly threads: number;
  readonly context: number;
  /** Sessions beside each other. */
  readonly sequences: number;
}

/** A peer that is there. */
export interface Peer {
  readonly name: string;
  /** Orders that it takes; memory is only measured where the process is the engine. */
  readonly orders: ReadonlySet<"prefill" | "decode" | "batch" | "memory">;
  /** Whether it takes tokens; else text, which random models have none of. */
  readonly takesTokens: boolean;
  /** Most tokens of a context that it is asked for: a slow peer would take the rest of the day. */
  readonly longest: number;
  /** Arguments of `deno run`. */
  command(start: Start): string[];
}

const PLAIN = ["--no-lock", "--no-config"];

const llamaCpp: Peer = {
  name: LLAMA_CPP,
  orders: new Set(["prefill", "decode", "batch", "memory"]),
  takesTokens: true,
  longest: Infinity,
  command: ({ path, threads, context, sequences }) => [
    ...PLAIN,
    ...["bench/cpu/llama_cpp.ts", path, `${threads}`, `${context}`, `${sequences}`],
  ],
};

function wllama(packages: string, chromium: string): Peer {
  return {
    name: WLLAMA,
    orders: new Set(["prefill", "decode"]),
    takesTokens: false,
    longest: 600,
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

async function installPackages(): Promise<string | undefined> {
  const home = Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`;
  const folder = `${home}/troodon-bench/cpu`;
  await Deno.mkdir(folder, { recursive: true });
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

async function findBrowser(): Promise<string | undefined> {
  for (const name of BROWSERS) {
    if (!await succeeds(name, ["--version"])) continue;
    const { stdout } = await new Deno.Command("which", { args: [name] }).output();
    return new TextDecoder().decode(stdout).trim();
  }
  return undefined;
}

async function succeeds(name: string, args: readonly string[], cwd?: string): Promise<boolean> {
  try {
    const options: Deno.CommandOptions = { args: [...args], stdout: "null", stderr: "null" };
    if (cwd !== undefined) options.cwd = cwd;
    return (await new Deno.Command(name, options).output()).success;
  } catch {
    return false;
  }
}
