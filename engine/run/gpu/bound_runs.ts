// Runs of one row of which the best of some columns is wanted: answers within a grammar, whose best logit is often one that
// is refused. What may follow a token is known as soon as that is, so the device can pick among it, feed it back, and begin
// with the next run before the host has read what was picked: it says what may follow that while the device computes. No run
// is in vain. (A run that is handed over before the last one was read would be waited for with it: gpu/readback.ts.)

import { STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import { ARGMAX_PARTS, argmaxFeedbackShader, argmaxParts } from "../../../gpu/kernels/argmax.ts";
import { createProgram, type Program } from "../../../gpu/program.ts";
import { createReadback, type Readback } from "../../../gpu/readback.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { RankedWish } from "../backend.ts";
import { entryWords } from "./best_programs.ts";
import {
  areConstant,
  type FedInputs,
  fedInputs,
  type FedParts,
  noteConstants,
} from "./fed_inputs.ts";
import type { LogitsPick } from "./logits.ts";

const PICK: LogitsPick = { kind: "best", rows: 1, whole: [] };
const ENTRY_BYTES = 4 * entryWords("best");

/** What finds the best of what is allowed. */
interface Finder {
  readonly program: Program<Record<never, never>>;
  /** Which columns, by bit. */
  readonly allowed: GPUBuffer;
  /** The entry of the best, and the row that it is of. */
  readonly best: GpuSlice;
  readonly kept: GpuSlice;
  readonly readback: Readback;
}

/** Runs whose best values are picked among some. */
export class BoundRuns {
  readonly #parts: FedParts;
  readonly #finder: Finder;
  readonly #inputs: FedInputs;
  /** Whether the device has begun with a run by itself: of which token, at which position. */
  #hasBegun = false;
  #token = 0;
  #position = 0;
  /** Commands of the next search. */
  #search: GPUCommandBuffer | undefined;
  #count = 0;

  constructor(parts: FedParts, finder: Finder) {
    this.#parts = parts;
    this.#finder = finder;
    this.#inputs = fedInputs(parts.plan, parts);
  }

  /** Makes them where results can be taken at once. */
  static async create(parts: FedParts): Promise<BoundRuns | undefined> {
    const finder = await createFinder(parts);
    return finder.readback.isImmediate ? new BoundRuns(parts, finder) : undefined;
  }

  /** Runs that the device had begun with before they were asked for. */
  get count(): number {
    return this.#count;
  }

  /** Gives the best of what is allowed; false if that is not what is asked for. */
  take(bindings: DimEnv, wish: RankedWish | undefined): boolean {
    const { scope: { device }, program, values, reach, logits } = this.#parts;
    const { readback, allowed } = this.#finder;
    if (!wish?.allowed || this.#inputs.rowsOf(bindings) !== 1) {
      this.forget();
      return false;
    }
    logits.forget();
    const position = this.#inputs.counted[0]!;
    if (this.#isNext(bindings)) this.#count++;
    else {
      noteConstants(this.#inputs.constants);
      values.writeInputs(bindings);
      program.bind(reach.ofInputs(bindings));
      device.queue.submit([this.#encodeRun()]);
    }
    this.#hasBegun = false;
    const words = Math.ceil(logits.vocabulary / 32);
    device.queue.writeBuffer(
      allowed,
      0,
      wish.allowed as Uint32Array<ArrayBuffer>,
      0,
      Math.min(words, wish.allowed.length),
    );
    readback.stamp();
    const search = this.#search ?? this.#encodeSearch();
    this.#search = undefined;
    device.queue.submit([search]);
    // The device has something to do meanwhile.
    this.#search = this.#encodeSearch();
    const mayFollow = wish.repeats > 0 && position + 1 < this.#inputs.capacity;
    const following = mayFollow ? reach.of(bindings, position + 1) : undefined;
    if (following) program.bind(following);
    const next = following && this.#encodeRun();
    readback.read(ENTRY_BYTES, (range, at) => {
      logits.take(PICK, 1, { range, at, source: this.#finder.kept });
    }, () => {
      if (!next) return;
      values.writeTables();
      device.queue.submit([next]);
    });
    if (!next) return true;
    this.#hasBegun = true;
    this.#token = logits.best(0)!.ids[0]!;
    this.#position = position + 1;
    return true;
  }

  /** To be called when rows of a slot are others than runs have written. */
  lose(slot: number): void {
    const { constants } = this.#inputs;
    if (constants.some(({ saysSlots, then }) => saysSlots && then[0] === slot)) this.forget();
  }

  /** To be called when other runs were made, or something went wrong. */
  forget(): void {
    this.#hasBegun = false;
  }

  #isNext(bindings: DimEnv): boolean {
    const { fed, counted, constants } = this.#inputs;
    return this.#hasBegun && fed[0] === this.#token && counted[0] === this.#position &&
      areConstant(constants, bindings, { rowsToo: true });
  }

  #encodeRun(): GPUCommandBuffer {
    const { scope: { device }, program } = this.#parts;
    const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
    program.encode(pass);
    pass.end();
    return encoder.finish();
  }

  #encodeSearch(): GPUCommandBuffer {
    const { scope: { device } } = this.#parts, { program, best, readback } = this.#finder;
    const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass();
    program.bind({});
    program.encode(pass);
    pass.end();
    readback.copy(encoder, [{ ...best, bytes: ENTRY_BYTES }]);
    return encoder.finish();
  }
}

async function createFinder(
  { scope, plan, ranked, values, logits: { vocabulary } }: FedParts,
): Promise<Finder> {
  const slice = (label: string, bytes: number): GpuSlice => (
    {
      buffer: scope.createBuffer(label, bytes, STORAGE_USAGE),
      offset: 0,
      bytes,
      access: "read_write",
    }
  );
  const ofInput = (wanted: string) =>
    values.slice(plan.graph.inputs.find(({ name }) => name === wanted)!);
  const logits = values.slice(plan.graph.outputs.find(({ name }) => name === ranked.output)!);
  const parts = slice("allowed argmax", ENTRY_BYTES * ARGMAX_PARTS);
  const best = slice("best allowed logit", ENTRY_BYTES),
    kept = slice("bound logits", 4 * vocabulary);
  const allowed = slice("allowed columns", 4 * Math.ceil(vocabulary / 32));
  const [readback, program] = await Promise.all([
    createReadback(scope, ENTRY_BYTES),
    // Compiled when a grammar first asks for it.
    createProgram<Record<never, never>>(scope, {
      eager: [],
      dispatches: [
        {
          name: "gpu_argmax_parts",
          shader: argmaxParts({ keeps: true, among: true }),
          storage: { logits, parts, kept, allowed },
          uniforms: { count: vocabulary },
          workgroups: [ARGMAX_PARTS, 1],
        },
        {
          name: "gpu_argmax_feedback",
          shader: argmaxFeedbackShader,
          storage: { parts, tokens: ofInput(ranked.fed), positions: ofInput(ranked.counted), best },
          uniforms: {},
          workgroups: [1],
        },
      ],
    }),
  ]);
  return { program, allowed: allowed.buffer, best, kept, readback };
}
