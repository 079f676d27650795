// Which keys of a spec its blocks read only beside others: `norm.base` belongs to rms norms, a router to mixtures.
// A key that no block would read is refused, since what it asks for would be left undone without a word; one that a
// block cannot do without is asked for. Keys that stand in no row are read always. spec_reads_test.ts holds the rows
// against what the blocks read when they are built.

import { FormatError } from "../errors.ts";
import type { ModelSpec } from "./spec_rules.ts";

/** Keys that are read under one condition. */
interface Condition {
  /** What must hold, as the message has it. */
  readonly where: string;
  holds(spec: ModelSpec): boolean;
  /** Paths of keys that are read then alone; `*` is any name. */
  readonly reads?: readonly string[];
  /** Paths of keys that must be there then, also those that are read otherwise too. */
  readonly needs?: readonly string[];
}

const isLatent = ({ attention }: ModelSpec): boolean => attention.kind === "latent";
const rotates = ({ attention }: ModelSpec): boolean =>
  Object.values(attention.kinds).some(({ theta }) => theta !== undefined);

const CONDITIONS: readonly Condition[] = [
  { where: 'norm.kind is "rms"', holds: (s) => s.norm.kind === "rms", reads: ["norm.base"] },
  {
    where: 'attention.kind is "heads"',
    holds: (spec) => !isLatent(spec),
    reads: ["attention.headNorm"],
  },
  {
    where: 'attention.kind is "latent"',
    holds: isLatent,
    reads: ["attention.ropeTemperature"],
    needs: ["attention.kinds.*.theta"],
  },
  {
    where: "a kind of attention has theta",
    holds: rotates,
    reads: ["attention.ropeStyle"],
    needs: ["attention.ropeStyle"],
  },
  {
    where: 'attention.pattern.rule is "every"',
    holds: ({ attention }) => attention.pattern.rule === "every",
    reads: ["attention.pattern.period"],
    needs: ["attention.pattern.period"],
  },
  {
    where: 'attention.pattern.rule is "from"',
    holds: ({ attention }) => attention.pattern.rule === "from",
    reads: ["attention.pattern.when", "attention.pattern.start"],
    needs: ["attention.pattern.start"],
  },
  {
    where: 'attention.pattern.rule is "every" or "from"',
    holds: ({ attention }) => attention.pattern.rule !== "uniform",
    reads: ["attention.pattern.others"],
    needs: ["attention.pattern.others"],
  },
  {
    where: 'feedForward.kind is "mixture"',
    holds: ({ feedForward }) => feedForward.kind === "mixture",
    reads: ["feedForward.router", "feedForward.shared"],
    needs: ["feedForward.router"],
  },
  {
    where: 'feedForward.kind is "gated" or "mixture"',
    holds: ({ feedForward }) => feedForward.kind !== "plain",
    reads: ["feedForward.clamped"],
  },
  {
    where: "feedForward is not clamped",
    holds: ({ feedForward, head }) => !feedForward.clamped || head?.transform !== undefined,
    reads: ["feedForward.activation"],
  },
  {
    where: 'network is "encoder"',
    holds: ({ network }) => network === "encoder",
    reads: ["embedding.types", "classifier", "pairSeparators"],
  },
  {
    where: 'network is "encoder-decoder"',
    holds: ({ network }) => network === "encoder-decoder",
    reads: ["encoder", "translation"],
    needs: ["encoder"],
  },
  {
    where: 'network is "encoder" or "encoder-decoder"',
    holds: ({ network = "decoder" }) => network !== "decoder",
    reads: ["attention.relativeBias"],
  },
  {
    where: 'network is "decoder" or "encoder-decoder"',
    holds: ({ network }) => network !== "encoder",
    reads: ["head.norm"],
  },
];

/**
 * Refuses keys that no block reads, and asks for those that one needs.
 *
 * @throws {FormatError} Naming the path of the key and when it is read.
 */
export function checkReads(spec: ModelSpec, file: string): void {
  for (const { where, holds, reads = [], needs = [] } of CONDITIONS) {
    const isRead = holds(spec);
    for (const pattern of isRead ? needs : reads) {
      for (const [place, value] of valuesAt(spec, pattern)) {
        if (isRead === (value !== undefined)) continue;
        throw new FormatError(
          isRead ? `is missing: it is needed where ${where}` : `is read only where ${where}`,
          { file, place },
        );
      }
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
  const steps = pattern.split(".");
  let found: [string, unknown][] = [["", spec]];
  for (const step of steps) {
    found = found.flatMap(([place, value]) => {
      if (value === undefined) return [];
      const names = step === "*" ? Object.keys(value as object) : [step];
      return names.map((name): [string, unknown] => [
        place === "" ? name : `${place}.${name}`,
        (value as Readonly<Record<string, unknown>>)[name],
      ]);
    });
  }
  return found;
}
