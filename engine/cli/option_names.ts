// The engine's errors name options of its API ("load with a larger contextLength"). Whoever typed a
// command knows only flags, so the CLI says those instead. Words that are no option stay as they are.

/** Flags by the API option that they set. Sampler options keep their names: `--sampling` takes them. */
const FLAGS: Readonly<Record<string, string>> = {
  contextLength: "--context",
  kvFormat: "--kv-format",
  onContextFull: "--context-full",
  maxTokens: "--max-tokens",
  ignoreEos: "--ignore-eos",
  maxHostBytes: "--max-host-bytes",
  cacheTokens: "--cache-tokens",
  cacheDir: "--cache-dir",
  chatTemplate: "--chat-template",
  padTo: "--pad-to",
  stepsAhead: "--steps-ahead",
  maxSubmitMs: "--max-submit-ms",
  gpuLayers: "--gpu-layers",
  maxDeviceBytes: "--max-device-bytes",
  hostEmbeddings: "--host-embeddings",
  hostKvPercent: "--host-kv-percent",
  saturate: "--saturate",
  // These words alone are none of ours: systems bind ports, numbers have a precision.
  "with bind": "with --bind",
  "with precision": "with --precision",
  "give init": "give --init",
  "width must": "--width must",
  "height must": "--height must",
};

const OPTION = new RegExp(
  `(?<![\\w./\\\\-])(${Object.keys(FLAGS).join("|")})\\b(?![./\\\\]\\w):?`,
  "g",
);

/**
 * A message with flags where it had option names.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 * assertEquals(inFlags("Load with contextLength: 8"), "Load with --context 8");
 * ```
 */
export function inFlags(message: string): string {
  return message.replace(OPTION, (_, name: string) => FLAGS[name]!);
}
