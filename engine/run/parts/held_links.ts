// Values that one part of a plan makes on a device and later parts read there: they stay, and the host looks only at
// what it computes from or what is a result. For parts that run one after another.

import { product } from "../../graph/dim/mod.ts";
import type { Plan } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";
import { hostElementBytes } from "../../ops/host_tensor.ts";
import type { PreparedPlan } from "../backend.ts";
import type { HeldTransfers, HeldValue, Holder } from "../held.ts";

/** What of links is asked. */
interface LinkedPart {
  readonly plan: Plan;
  readonly prepared: PreparedPlan;
}

/** Values that stay between parts. */
export interface HeldLinks {
  /**
   * What stays in a run of a part, of it and of what the caller has and wants; undefined: all of its values are the
   * host's.
   */
  transfersOf(part: number, given: HeldTransfers | undefined): HeldTransfers | undefined;
  dispose(): void;
}

/** Finds what can stay, and makes memory for it. */
export async function linkParts(plan: Plan, parts: readonly LinkedPart[]): Promise<HeldLinks> {
  const results = new Set(plan.graph.outputs.map(({ id }) => id));
  const inputs = parts.map(() => new Map<string, HeldValue>());
  const outputs = parts.map(() => new Map<string, HeldValue[]>());
  const unread = parts.map(() => new Set<string>());
  /** Values of a part that a later one takes from the host. */
  const hostReads = new Set<string>();
  for (const [i, { plan: { graph, limits }, prepared: { holder } }] of parts.entries()) {
    for (const value of graph.outputs) {
      const { name, id, shape, dtype } = value;
      const readers = parts.flatMap(({ plan }, at) =>
        at > i && plan.graph.inputs.some((input) => input.id === id) ? [at] : []
      );
      const takers: number[] = [];
      if (holder && readers.some((at) => parts[at]!.prepared.holder)) {
        const held = await holder.hold(maximumOf(product(shape), limits) * hostElementBytes(dtype));
        for (const at of readers) {
          if (!parts[at]!.prepared.holder?.takes(name, held)) continue;
          inputs[at]!.set(name, held);
          takers.push(at);
        }
        outputs[i]!.set(name, [held]);
      }
      if (takers.length < readers.length) hostReads.add(name);
      else if (takers.length > 0 && !results.has(id)) unread[i]!.add(name);
    }
  }
  const own = parts.map((_, i): HeldTransfers | undefined =>
    inputs[i]!.size + outputs[i]!.size > 0
      ? { inputs: inputs[i]!, outputs: outputs[i]!, unread: unread[i]! }
      : undefined
  );
  return {
    transfersOf(part, given) {
      const { plan, prepared: { holder } } = parts[part]!;
      if (!given || !holder) return own[part];
      return joined(own[part], plan, { ...given, unread: given.unread.difference(hostReads) });
    },
    dispose: () => outputs.flatMap((held) => [...held.values()].flat()).forEach((v) => v.dispose()),
  };
}

function joined(
  own: HeldTransfers | undefined,
  { graph: { inputs, outputs } }: Plan,
  given: HeldTransfers,
): HeldTransfers {
  const wanted = outputs.map(({ name }) => {
    const targets = [...own?.outputs.get(name) ?? [], ...given.outputs.get(name) ?? []];
    return [name, targets] as const;
  });
  return {
    inputs: new Map([
      ...own?.inputs ?? [],
      ...[...given.inputs].filter(([name]) => inputs.some((input) => input.name === name)),
    ]),
    outputs: new Map(wanted),
    unread: new Set([...own?.unread ?? [], ...given.unread]),
  };
}

/** What a plan in parts offers: inputs that no part on the host reads, and outputs that none makes. */
export function holderOfParts(
  parts: readonly LinkedPart[],
  run: Holder["run"],
): Holder | undefined {
  const first = parts.find(({ prepared }) => prepared.holder)?.prepared.holder;
  return first && {
    hold: first.hold,
    takes: (input, value) =>
      parts.every(({ plan, prepared }) =>
        !plan.graph.inputs.some(({ name }) => name === input) ||
        prepared.holder?.takes(input, value)
      ),
    keeps: (output) =>
      parts.some(({ plan, prepared }) =>
        prepared.holder && plan.graph.outputs.some(({ name }) => name === output)
      ),
    run,
  };
}
