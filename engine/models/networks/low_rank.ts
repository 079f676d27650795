// LoRA adapters of networks (arXiv 2106.09685), as diffusers, PEFT and kohya's scripts write them: in one file of
// safetensors, by the names of the layers that they change, of the network and of text encoders. What a file holds for
// layers that a pipeline lacks is refused: an adapter that is applied in part is another one.

import { FormatError, SourceError, UnsupportedError } from "../../errors.ts";
import { openSafetensors } from "../../formats/safetensors/safetensors.ts";
import type { MetadataValue, TensorInfo, WeightFile } from "../../formats/source.ts";
import { asObject, parseJson } from "../../formats/strict_json.ts";
import { listFolder, openFile, pathKind, siblingPath } from "../../io.ts";
import { readConstant } from "../constants.ts";
import type { LowRank } from "./atoms/atom.ts";
import type { Names } from "./expression.ts";

/** A layer of a pipeline. */
export interface LayerPlace {
  /** Folder of its network: `unet`, `text_encoder_2`. */
  readonly part: string;
  readonly path: string;
  /** What the network is, for names that count its blocks through. */
  readonly names?: Names | undefined;
}

/** An open adapter. */
export interface LowRankFile extends Disposable {
  /** What it adds to a layer. */
  of(place: LayerPlace): readonly LowRank[];
  /** @throws {UnsupportedError} If something of it was not asked for. */
  checkUsed(): void;
}

type Settings = Readonly<Record<string, MetadataValue>>;

/** Endings of both matrices. */
const PAIRS = [
  [".lora_A.weight", ".lora_B.weight"],
  [".lora.down.weight", ".lora.up.weight"],
  [".lora_down.weight", ".lora_up.weight"],
  ["_lora.down.weight", "_lora.up.weight"],
  [".lora_linear_layer.down.weight", ".lora_linear_layer.up.weight"],
] as const;

/** What kohya's scripts call the parts of a pipeline. */
const KOHYA: Readonly<Record<string, readonly string[]>> = {
  text_encoder: ["te", "te1"],
  text_encoder_2: ["te2"],
  text_encoder_3: ["te3"],
};

/** What the names of a layer's matrices may begin with. */
function namesOf({ part, path, names }: LayerPlace): string[] {
  const flat = path.replaceAll(".", "_");
  if (KOHYA[part]) {
    const kohya = KOHYA[part].map((word) => `lora_${word}_${flat}`);
    return [`${part}.${path}`, `${part}.${path.replace(/^text_model\./, "")}`, ...kohya];
  }
  const processor = path.replace(/\.(to_[a-z]+)(\.0)?$/, ".processor.$1");
  const counted = names && countedPath(path, Number(names.layers));
  return [
    `${part}.${path}`,
    path,
    `lora_${part}_${flat}`,
    `${part}.${processor}`,
    processor,
    ...counted === undefined ? [] : [`lora_${part}_${counted.replaceAll(".", "_")}`],
  ];
}

/** Layers of a block of residuals in the names of Stability's own code. */
const RESIDUAL: Readonly<Record<string, string>> = {
  conv1: "in_layers.2",
  time_emb_proj: "emb_layers.1",
  conv2: "out_layers.3",
  conv_shortcut: "skip_connection",
};

/** Layers outside of blocks in those names. */
const OUTER: Readonly<Record<string, string>> = {
  conv_in: "input_blocks.0.0",
  conv_out: "out.2",
  "time_embedding.linear_1": "time_embed.0",
  "time_embedding.linear_2": "time_embed.2",
  "add_embedding.linear_1": "label_emb.0.0",
  "add_embedding.linear_2": "label_emb.0.2",
};

/**
 * The path of a UNet's layer in the names of Stability's own code, which kohya's scripts have for SD XL: blocks are counted
 * through, `layers` and what halves or doubles behind them a level.
 */
function countedPath(path: string, layers: number): string | undefined {
  const found = /^(down|mid|up)_block(?:s\.(\d+))?\.(resnets|attentions|\w+samplers)\.(\d+)\.(.+)$/
    .exec(path);
  if (!found) return OUTER[path];
  const [, side, level, kind, index, inner = ""] = found, at = Number(level), i = Number(index);
  const rest = kind === "resnets" ? RESIDUAL[inner] : inner;
  if (rest === undefined) return undefined;
  if (side === "mid") return `middle_block.${kind === "resnets" ? 2 * i : 1}.${rest}`;
  const place = Number(kind !== "resnets");
  if (side === "down") {
    return kind === "downsamplers"
      ? `input_blocks.${(at + 1) * (layers + 1)}.0.op`
      : `input_blocks.${1 + at * (layers + 1) + i}.${place}.${rest}`;
  }
  return kind === "upsamplers"
    ? `output_blocks.${at * (layers + 1) + layers}.2.conv`
    : `output_blocks.${at * (layers + 1) + i}.${place}.${rest}`;
}

/**
 * Opens an adapter.
 *
 * @param scale How much it counts.
 * @throws {SourceError} If there is no such file.
 * @throws {FormatError} If it holds half of a layer. @throws {UnsupportedError} If it asks for what is not built.
 */
export async function openLowRank(
  path: string,
  { scale }: { readonly scale: number },
): Promise<LowRankFile> {
  if (!Number.isFinite(scale)) throw new RangeError(`Cannot apply ${path} with scale ${scale}`);
  using opened = new DisposableStack();
  const file = opened.adopt(await openSafetensors(openFile(fileOf(path))), (one) => one.close());
  const alphas = new Map<string, number>();
  for (const [name, tensor] of file.tensors) {
    if (name.endsWith(".alpha")) {
      alphas.set(name.slice(0, -".alpha".length), (await readConstant(tensor))[0]!);
    }
  }
  const used = new Set<string>(), settings = settingsOf(file);
  const all = opened.move();
  return {
    of(place) {
      for (const base of namesOf(place)) {
        for (const [downEnd, upEnd] of PAIRS) {
          const down = file.tensors.get(base + downEnd), up = file.tensors.get(base + upEnd);
          if (!down && !up) continue;
          const [found, missing] = down ? [down, upEnd] : [up!, downEnd];
          if (!down || !up) throw half(file, found, base + missing);
          const rank = down.shape[0]!;
          if (up.shape[1] !== rank) throw half(file, up, `a matrix of rank ${rank}`);
          used.add(down.name).add(up.name);
          const alpha = alphas.get(base);
          const noted = alpha === undefined ? factorOf(settings, place, rank) : alpha / rank;
          return [{ down, up, factor: scale * noted }];
        }
      }
      return [];
    },
    checkUsed() {
      const left = [...file.tensors.keys()].find((name) =>
        !used.has(name) && !name.endsWith(".alpha")
      );
      if (left === undefined) return;
      throw new UnsupportedError(`tensor ${left} is for no layer of this model`, {
        file: path,
        remedy: "Use an adapter that was trained for this model",
      });
    },
    [Symbol.dispose]: () => all.dispose(),
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

/** PEFT's settings, each behind its part's name, as diffusers notes them beside the tensors. */
function settingsOf({ metadata, name: file }: WeightFile): Settings {
  const key = "lora_adapter_metadata", noted = metadata.get(key);
  if (typeof noted !== "string") return {};
  const settings = asObject(parseJson(noted, { file, place: key })) ?? {};
  for (const [place, value] of Object.entries(settings)) {
    const odd = /_pattern$/.test(place) &&
      Object.keys(asObject(value) ?? {}).find((name) => /[^\w.]/.test(name));
    if (odd) {
      throw new UnsupportedError(`${odd} is no name of a layer, and patterns are not read`, {
        file,
        place,
      });
    }
  }
  return settings;
}

/** alpha / rank, or alpha / √rank (arXiv 2312.03732); 1 where nothing is noted. */
function factorOf(settings: Settings, { part, path }: LayerPlace, rank: number): number {
  const patterns = Object.entries(asObject(settings[`${part}.alpha_pattern`]) ?? {});
  const own = patterns.find(([name]) => `.${path}`.endsWith(`.${name}`))?.[1];
  const alpha = own ?? settings[`${part}.lora_alpha`];
  if (typeof alpha !== "number") return 1;
  return alpha / (settings[`${part}.use_rslora`] === true ? Math.sqrt(rank) : rank);
}
