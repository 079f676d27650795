// LoRA adapters of networks (arXiv 2106.09685), as diffusers, PEFT and kohya's scripts write them: in one file of
// safetensors, by the names of the layers that they change. What a file holds for layers that the network lacks, or for a
// text encoder, is refused: an adapter that is applied in part is another one.

import { FormatError, SourceError, UnsupportedError } from "../../errors.ts";
import { openSafetensors } from "../../formats/safetensors/safetensors.ts";
import type { TensorInfo, WeightFile } from "../../formats/source.ts";
import { asObject } from "../../formats/strict_json.ts";
import { listFolder, openFile, pathKind, siblingPath } from "../../io.ts";
import { readConstant } from "../constants.ts";
import type { LowRank } from "./atoms/atom.ts";

/** An open adapter. */
export interface LowRankFile extends Disposable {
  /** What it adds to the layer at a path. */
  of(path: string): readonly LowRank[];
  /** @throws {UnsupportedError} If something of it was not asked for. */
  checkUsed(): void;
}

/** Endings of both matrices. */
const PAIRS = [
  [".lora_A.weight", ".lora_B.weight"],
  [".lora.down.weight", ".lora.up.weight"],
  [".lora_down.weight", ".lora_up.weight"],
  ["_lora.down.weight", "_lora.up.weight"],
] as const;

/** What the names of a layer's matrices may begin with. */
function namesOf(part: string, path: string): string[] {
  const processor = path.replace(/\.(to_[a-z]+)(\.0)?$/, ".processor.$1");
  return [
    `${part}.${path}`,
    path,
    `lora_${part}_${path.replaceAll(".", "_")}`,
    `${part}.${processor}`,
    processor,
  ];
}

/**
 * Opens an adapter.
 *
 * @param part What of a pipeline it is for: `unet`.
 * @param scale How much it counts.
 * @throws {SourceError} If there is no such file.
 * @throws {FormatError} If it holds half of a layer.
 */
export async function openLowRank(
  path: string,
  { part, scale }: { readonly part: string; readonly scale: number },
): Promise<LowRankFile> {
  if (!Number.isFinite(scale)) throw new RangeError(`Cannot apply ${path} with scale ${scale}`);
  const file = await openSafetensors(openFile(fileOf(path)));
  const alphas = new Map<string, number>();
  for (const [name, tensor] of file.tensors) {
    if (name.endsWith(".alpha")) {
      alphas.set(name.slice(0, -".alpha".length), (await readConstant(tensor))[0]!);
    }
  }
  const factorOf = factorsOf(file, part);
  const used = new Set<string>();
  return {
    of(place) {
      for (const base of namesOf(part, place)) {
        for (const [downEnd, upEnd] of PAIRS) {
          const down = file.tensors.get(base + downEnd), up = file.tensors.get(base + upEnd);
          if (!down && !up) continue;
          const [found, missing] = down ? [down, upEnd] : [up!, downEnd];
          if (!down || !up) throw half(file, found, base + missing);
          const rank = down.shape[0]!;
          if (up.shape[1] !== rank) throw half(file, up, `a matrix of rank ${rank}`);
          used.add(down.name).add(up.name);
          const alpha = alphas.get(base);
          return [{ down, up, factor: scale * (alpha === undefined ? factorOf : alpha / rank) }];
        }
      }
      return [];
    },
    checkUsed() {
      const left = [...file.tensors.keys()].find((name) =>
        !used.has(name) && !name.endsWith(".alpha")
      );
      if (left === undefined) return;
      throw new UnsupportedError(`tensor ${left} is for no layer of the ${part}`, {
        file: path,
        remedy: "Use an adapter for this model, without parts for its text encoder",
      });
    },
    [Symbol.dispose]: () => file.close(),
  };
}

function fileOf(path: string): string {
  if (pathKind(path) !== "folder") return path;
  const names = listFolder(path).filter((name) => name.endsWith(".safetensors"));
  if (names.length === 1) return siblingPath(`${path}/`, names[0]!);
  throw new SourceError(`holds ${names.length} .safetensors files`, {
    file: path,
    remedy: "Give the path of the adapter's file",
  });
}

function half({ name: file }: WeightFile, { name }: TensorInfo, missing: string): FormatError {
  return new FormatError(`has no ${missing} beside it`, { file, place: `tensor ${name}` });
}

/** alpha / rank, as diffusers notes it beside the tensors; 1 where nothing is noted. */
function factorsOf({ metadata, name }: WeightFile, part: string): number {
  const noted = metadata.get("lora_adapter_metadata");
  if (typeof noted !== "string") return 1;
  const json = asObject(JSON.parse(noted)) ?? {};
  for (const key of Object.keys(json)) {
    if (/_pattern$|use_dora$/.test(key) && Object.keys(asObject(json[key]) ?? {}).length > 0) {
      throw new UnsupportedError("of single layers is not read", { file: name, place: key });
    }
  }
  const alpha = json[`${part}.lora_alpha`], rank = json[`${part}.r`];
  return typeof alpha === "number" && typeof rank === "number" ? alpha / rank : 1;
}
