// Fetches a wheel from PyPI through pip: `pip download --no-deps`, never an install, and binary wheels
// only, since a source package would run its own code. Going through pip means that a person's index,
// proxy and credentials are the ones already set up.

import { ResourceError, SourceError } from "../../errors.ts";
import { sleep } from "./retry.ts";

/** Which wheel, and where to put it. */
export interface WheelRequest {
  /** Name on PyPI. */
  readonly package: string;
  /** Exact version; the newest by default. */
  readonly version: string | undefined;
  /** An empty folder; the wheel and pip's temporary files go there. */
  readonly folder: string;
  /** Ends pip. */
  readonly signal?: AbortSignal | undefined;
  /** Bytes that have come so far, as far as can be seen. */
  readonly onBytes?: ((received: number) => void) | undefined;
}

const LAUNCHERS: readonly (readonly [command: string, ...args: string[]])[] = [
  ["pip"],
  ["pip3"],
  ["python3", "-m", "pip"],
];
const WATCH_MS = 200;

/**
 * Downloads a wheel.
 *
 * @throws {SourceError} If there is no pip, it may not be run, or it fails.
 * @throws {ResourceError} If the disk is full.
 */
export async function downloadWheel(request: WheelRequest): Promise<void> {
  const { package: name, version, folder, signal } = request;
  const requirement = version === undefined ? name : `${name}==${version}`;
  const denied: { readonly command: string; readonly error: unknown }[] = [];
  for (const [command, ...prefix] of LAUNCHERS) {
    const process = start(
      command,
      { args: [...prefix, ...pipArguments(requirement, folder)], request, denied },
    );
    if (!process) continue;
    const { success, stderr } = await watch(process, request);
    signal?.throwIfAborted();
    if (success && findWheel(folder)) return;
    const report = new TextDecoder().decode(stderr);
    if (/No module named pip\b/.test(report)) continue;
    throw describeFailure(requirement, report);
  }
  if (denied.length > 0) {
    // Where pip itself was refused, allowing it is enough; otherwise it is not there, but others may be.
    const names = denied.map(({ command }) => command);
    throw new SourceError(`Deno may not run ${names.join(" or ")}`, {
      file: `pypi:${requirement}`,
      remedy: `Run with --allow-run=${names.includes("pip") ? "pip" : names.join(",")}, ` +
        "or use a path, an https URL or an hf: name",
      cause: denied[0].error,
    });
  }
  throw new SourceError("there is no pip on this machine", {
    file: `pypi:${requirement}`,
    remedy: "Install Python's pip, or use a path, an https URL or an hf: name",
  });
}

function pipArguments(requirement: string, folder: string): string[] {
  return [
    "download",
    "--no-deps",
    "--only-binary=:all:",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    "--quiet",
    "--dest",
    folder,
    "--",
    requirement,
  ];
}

function start(
  command: string,
  { args, request: { folder, signal }, denied }: {
    readonly args: string[];
    readonly request: WheelRequest;
    readonly denied: { readonly command: string; readonly error: unknown }[];
  },
): Deno.ChildProcess | undefined {
  const spawn = (env: Readonly<Record<string, string>>) =>
    new Deno.Command(command, {
      args,
      // pip unpacks into its temporary folder first: there its progress can be seen.
      env: { ...env, TMPDIR: folder },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
      ...signal ? { signal } : {},
    }).spawn();
  try {
    try {
      return spawn({});
    } catch (error) {
      // With paths of libraries, as CUDA has them, a child needs leave to run anything; without them it does not.
      const names = error instanceof Deno.errors.NotCapable &&
        error.message.match(/\b(LD|DYLD)_\w+/g);
      if (!names) throw error;
      return spawn(Object.fromEntries(names.map((name) => [name, ""])));
    }
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    if (!(error instanceof Deno.errors.NotCapable)) throw error;
    denied.push({ command, error });
    return undefined;
  }
}

async function watch(
  process: Deno.ChildProcess,
  { folder, onBytes }: WheelRequest,
): Promise<Deno.CommandOutput> {
  const done = new AbortController();
  const output = process.output().finally(() => done.abort());
  while (!done.signal.aborted) {
    await sleep(WATCH_MS, done.signal).catch(() => {});
    onBytes?.(largestFile(folder));
  }
  return await output;
}

function largestFile(folder: string): number {
  let largest = 0;
  try {
    for (const { name, isDirectory } of Deno.readDirSync(folder)) {
      const path = `${folder}/${name}`;
      largest = Math.max(largest, isDirectory ? largestFile(path) : Deno.statSync(path).size);
    }
  } catch {
    // pip moves its files while we look.
  }
  return largest;
}

/** The one wheel in a folder, or undefined. */
export function findWheel(folder: string): string | undefined {
  try {
    const wheels = [...Deno.readDirSync(folder)].filter(({ name }) => name.endsWith(".whl"));
    return wheels.length === 1 ? `${folder}/${wheels[0].name}` : undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

function describeFailure(requirement: string, report: string): Error {
  if (/Errno 28|No space left/.test(report)) {
    return new ResourceError("the disk is full", {
      file: `pypi:${requirement}`,
      remedy: "Make room or set TROODON_CACHE to another disk, then run the same command again",
    });
  }
  const lines = report.split("\n").map((line) => line.trim());
  const reason = lines.findLast((line) => line.startsWith("ERROR:")) ?? lines.findLast(Boolean);
  return new SourceError(`pip could not fetch it (${reason?.slice(0, 300) ?? "no reason given"})`, {
    file: `pypi:${requirement}`,
    remedy: "Check the network and pip's settings, or use a path, an https URL or an hf: name",
  });
}
