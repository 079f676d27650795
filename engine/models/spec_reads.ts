// Which keys of a spec its blocks read only beside others: `norm.base` belongs to rms norms, a router to mixtures.
// A key that no block would read is refused, since what it asks for would be left undone without a word; one that a
// block cannot do without is asked for. Keys that stand in no row are read always. spec_reads_test.ts holds the rows
// against what the blocks read when they are built.

import { FormatError } from "../errors.ts";
import type { ModelSpec } from "./spec_rules.ts";

/** What must hold, as messages have it, and the paths of keys that are read then alone; `*` is any name. */
type Condition = readonly [where: string, holds: (spec: ModelSpec) => boolean, reads: string[]];

const ofRule = (...rules: string[]) => ({ attention }: ModelSpec) =>
  rules.includes(attention.pattern.rule);
const ofKind = (...kinds: string[]) => ({ feedForward }: ModelSpec) =>
  kinds.includes(feedForward.kind);
const ofNetwork = (...networks: string[]) => ({ network = "decoder" }: ModelSpec) =>
  networks.includes(network);
const isLatent = ({ attention }: ModelSpec): boolean => attention.kind === "latent";

/** A key with `!` must be there then; with `+` too, though it is read otherwise as well. */
const CONDITIONS: readonly Condition[] = [
  ['norm.kind is "rms"', ({ norm }) => norm.kind === "rms", ["norm.base"]],
  ['attention.kind is "heads"', (spec) => !isLatent(spec), ["attention.headNorm"]],
  ['attention.kind is "latent"', isLatent, [
    "attention.ropeTemperature",
    "attention.kinds.*.theta+",
  ]],
  [
    "a kind of attention has theta",
    ({ attention: { kinds } }) => Object.values(kinds).some(({ theta }) => theta !== undefined),
    ["attention.ropeStyle!"],
  ],
  ['attention.pattern.rule is "every"', ofRule("every"), ["attention.pattern.period!"]],
  ['attention.pattern.rule is "from"', ofRule("from"), [
    "attention.pattern.when",
    "attention.pattern.start!",
  ]],
  ['attention.pattern.rule is "listed"', ofRule("listed"), ["attention.pattern.layers!"]],
  ['attention.pattern.rule is "every", "from" or "listed"', ofRule("every", "from", "listed"), [
    "attention.pattern.others!",
  ]],
  ['feedForward.kind is "mixture"', ofKind("mixture"), [
    "feedForward.router!",
    "feedForward.shared",
  ]],
  ['feedForward.kind is "gated" or "mixture"', ofKind("gated", "mixture"), ["feedForward.clamped"]],
  [
    "feedForward is not clamped",
    ({ feedForward, head }) => !feedForward.clamped || head?.transform !== undefined,
    ["feedForward.activation"],
  ],
  ['network is "encoder"', ofNetwork("encoder"), [
    ...["embedding.types", "pairSeparators", "attention.causal"],
  ]],
  ['network is "encoder" or "picture"', ofNetwork("encoder", "picture"), [
    ...["classifier", "outputNorm", "pool"],
  ]],
  ['network is "picture"', ofNetwork("picture"), [
    ...["embedding.patches!", "attention.ropeByPlace"],
  ]],
  ['network is not "picture"', (spec) => !ofNetwork("picture")(spec), [
    ...["embedding.positions", "embedding.sinusoidal", "embedding.projection", "head"],
  ]],
  ['network is "encoder-decoder"', ofNetwork("encoder-decoder"), ["encoder!", "translation"]],
  ['network is "encoder" or "encoder-decoder"', ofNetwork("encoder", "encoder-decoder"), [
    "attention.relativeBias",
  ]],
  ['network is "decoder" or "encoder-decoder"', ofNetwork("decoder", "encoder-decoder"), [
    "head.norm",
  ]],
];

/**
 * Refuses keys that no block reads, and asks for those that one needs.
 *
 * @throws {FormatError} Naming the path of the key and when it is read.
 */
export function checkReads(spec: ModelSpec, file: string): void {
  for (const [where, holds, reads] of CONDITIONS) {
    const isRead = holds(spec);
    for (const [, path, mark] of reads.map((key) => /^(.*?)([!+]?)$/.exec(key)!)) {
      if (isRead ? mark === "" : mark === "+") continue;
      const found = valuesAt(spec, path!).find(([, value]) => isRead === (value === undefined));
      if (!found) continue;
      throw new FormatError(
        isRead ? `is missing: it is needed where ${where}` : `is read only where ${where}`,
        { file, place: found[0] },
      );
    }
  }
  for (const [name, { theta, scaling }] of Object.entries(spec.attention.kinds)) {
    if (scaling === undefined || theta !== undefined) continue;
    const place = `attention.kinds.${name}.scaling`;
    throw new FormatError("is read only where the kind has theta", { file, place });
  }
}

/** Paths that a pattern stands for, and what is there; the keys above the last must exist. */
function valuesAt(spec: unknown, pattern: string): [place: string, value: unknown][] {
  let found: [string, unknown][] = [["", spec]];
  for (const step of pattern.split(".")) {
    found = found.filter(([, value]) => value !== undefined).flatMap(([place, value]) => {
      const record = value as Readonly<Record<string, unknown>>;
      return (step === "*" ? Object.keys(record) : [step])
        .map((name): [string, unknown] => [place === "" ? name : `${place}.${name}`, record[name]]);
    });
  }
  return found;
}
