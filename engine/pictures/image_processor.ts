// What a preprocessor_config.json says about preparing pictures, as plain data: which processors of transformers are
// known, what each takes for granted (their defaults), and what a file may say instead. Fields that are of no use here
// are passed over; a processor that is not known is refused, as its steps may be others.

import { FormatError, UnsupportedError } from "../errors.ts";
import { COUNT, FLAG, NUMBER, OBJECT, type ValueRule, valueRule } from "../record.ts";
import type { ResizeFilter } from "./resize.ts";

/** A size as it is wished for. */
export type WantedSize =
  | { readonly width: number; readonly height: number }
  | { readonly shortestEdge: number };

/** A picture that becomes several, or one of a size of its own (picture_parts.ts). */
export type PictureCut =
  /** Resized by its longer edge, cut into squares of `side`, and the whole as one such square behind them. */
  | {
    readonly kind: "tiles";
    readonly longestEdge: number;
    readonly side: number;
    /** False: the whole alone. */
    readonly splits: boolean;
  }
  /** Of about its own size, within so many pixels, both sides multiples of `step`. */
  | { readonly kind: "free"; readonly least: number; readonly most: number; readonly step: number };

/** How pictures are prepared for a model. */
export interface ImageProcessor {
  /** Absent: pictures keep their size. */
  readonly resize?: { readonly size: WantedSize; readonly filter: ResizeFilter } | undefined;
  /** How pictures are cut; then there is no `resize`. */
  readonly cut?: { readonly rule: PictureCut; readonly filter: ResizeFilter } | undefined;
  /** Absent: nothing is cut off. */
  readonly crop?: { readonly width: number; readonly height: number } | undefined;
  /** Values of 0 to 255 are multiplied by this first. */
  readonly scale: number;
  /** What is then subtracted from each colour. */
  readonly mean: readonly number[];
  /** What each is divided by. */
  readonly deviation: readonly number[];
}

/** Pillow's numbers of filters. */
const RESAMPLE: readonly ResizeFilter[] = [
  ...["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"] as const,
];
const LANCZOS = 1, BILINEAR = 2, BICUBIC = 3;
const HALF = [0.5, 0.5, 0.5];
const CLIP_MEAN = [0.48145466, 0.4578275, 0.40821073];
const CLIP_DEVIATION = [0.26862954, 0.26130258, 0.27577711];

interface Defaults {
  readonly size: Readonly<Record<string, number>>;
  /** What a bare number is as a size. */
  readonly bareSize: "square" | "shortest_edge";
  readonly resample: number;
  readonly crop?: number;
  /** Below 384 more is kept around, and cut off: this share of the side stays. */
  readonly cropShare?: number;
  readonly mean: readonly number[];
  readonly deviation: readonly number[];
  readonly cut?: PictureCut["kind"];
}

const square = (side: number) => ({ width: side, height: side });
const CLIP: Defaults = {
  size: { shortest_edge: 224 },
  bareSize: "shortest_edge",
  resample: BICUBIC,
  crop: 224,
  mean: CLIP_MEAN,
  deviation: CLIP_DEVIATION,
};
const PLAIN: Defaults = {
  size: square(224),
  bareSize: "square",
  resample: BILINEAR,
  mean: HALF,
  deviation: HALF,
};

const TILES: Defaults = {
  ...PLAIN,
  size: { longest_edge: 4 * 364 },
  resample: LANCZOS,
  cut: "tiles",
};
const FREE: Defaults = {
  ...CLIP,
  size: { shortest_edge: 56 * 56, longest_edge: 28 * 28 * 1280 },
  cut: "free",
};

/** Processors by the name that a file gives, without its ending. */
const PROCESSORS: ReadonlyMap<string, Defaults> = new Map([
  ["CLIP", CLIP],
  ["Bit", CLIP],
  ["Siglip", { ...PLAIN, resample: BICUBIC }],
  ["ViT", PLAIN],
  ["DeiT", { ...PLAIN, size: square(256), resample: BICUBIC, crop: 224 }],
  ["ConvNext", {
    ...PLAIN,
    size: { shortest_edge: 384 },
    bareSize: "shortest_edge",
    cropShare: 224 / 256,
  }],
  ["Gemma3", PLAIN],
  ["Idefics3", TILES],
  ["SmolVLM", TILES],
  ["Qwen2VL", FREE],
]);

const ENDING = /(ImageProcessor(Fast|Pil)?|FeatureExtractor)$/;
const COLOURS = valueRule<readonly number[]>(
  "three numbers",
  (value) => Array.isArray(value) && value.length === 3 && value.every(Number.isFinite),
);
const SHARE = valueRule<number>(
  "a number above 0, at most 1",
  (value) => typeof value === "number" && value > 0 && value <= 1,
);

/** Steps of other processors, which nothing here does. */
const NOT_DONE: readonly string[] = [
  ...["do_pad", "do_flip_channel_order", "do_thumbnail", "do_align_long_axis"],
  ...["do_image_splitting", "rescale_offset", "do_pan_and_scan"],
];
/** Of those, what is done where tiles are cut; they need no filling up. */
const OF_TILES: readonly string[] = ["do_pad", "do_image_splitting"];

/** From this side on nothing is cut off (transformers' ConvNextImageProcessor). */
const UNCUT_SIDE = 384;

/**
 * Reads a preprocessor_config.json.
 *
 * @param config Its parsed content.
 * @param file For messages.
 * @throws {FormatError} If a field has a value that it cannot have.
 * @throws {UnsupportedError} If its processor, a step of it, or its kind of size, is not known.
 */
export function readImageProcessor(
  config: Readonly<Record<string, unknown>>,
  file = "preprocessor_config.json",
): ImageProcessor {
  const name = config.image_processor_type ?? config.feature_extractor_type;
  const defaults = typeof name === "string" ? PROCESSORS.get(name.replace(ENDING, "")) : undefined;
  if (!defaults) {
    const known = [...PROCESSORS.keys()].map((one) => `${one}ImageProcessor`).join(", ");
    throw new UnsupportedError(`image processor ${JSON.stringify(name) ?? "without name"}`, {
      file,
      place: "image_processor_type",
      remedy: `Known are ${known}`,
    });
  }
  const isTiled = defaults.cut === "tiles";
  const step = NOT_DONE.find((key) => config[key] === true && !(isTiled && OF_TILES.includes(key)));
  if (step) throw new UnsupportedError("a step that is not done", { file, place: step });
  const field = <T>(key: string, rule: ValueRule<T>, otherwise: T): T => {
    const value = config[key] ?? otherwise;
    if (rule.accepts(value)) return value;
    throw new FormatError(`must be ${rule.wanted}, not ${JSON.stringify(value)}`, {
      file,
      place: key,
    });
  };
  const filter = RESAMPLE[field("resample", COUNT, defaults.resample)];
  if (!filter) {
    throw new FormatError("must be a number from 0 to 5", { file, place: "resample" });
  }
  const size = defaults.cut
    ? undefined
    : sizeOf(config.size ?? defaults.size, { defaults, file, place: "size" });
  const share = defaults.cropShare && field("crop_pct", SHARE, defaults.cropShare);
  const isCropped = !defaults.cut && field("do_center_crop", FLAG, defaults.crop !== undefined);
  const isResized = field("do_resize", FLAG, true);
  if (defaults.cut && !isResized) {
    throw new UnsupportedError("pictures in their own size", { file, place: "do_resize" });
  }
  const isScaled = field("do_rescale", FLAG, true), isNormal = field("do_normalize", FLAG, true);
  const processor = {
    resize: isResized && size ? { size, filter } : undefined,
    cut: defaults.cut && { rule: cutOf(config, { defaults, file }), filter },
    crop: isCropped
      ? sides(
        sizeOf(config.crop_size ?? defaults.crop, {
          defaults: { ...defaults, bareSize: "square" },
          file,
          place: "crop_size",
        }),
      )
      : undefined,
    scale: isScaled ? field("rescale_factor", NUMBER, 1 / 255) : 1,
    mean: isNormal ? field("image_mean", COLOURS, defaults.mean) : [0, 0, 0],
    deviation: isNormal ? field("image_std", COLOURS, defaults.deviation) : [1, 1, 1],
  };
  return share && processor.resize ? withShare(processor, share) : processor;
}

/** How a picture is cut, by the fields that its processor has for that. */
function cutOf(
  config: Readonly<Record<string, unknown>>,
  { defaults, file }: { readonly defaults: Defaults; readonly file: string },
): PictureCut {
  const { size = defaults.size } = config;
  const edges = OBJECT.accepts(size) ? size : {};
  const count = (place: string, value: unknown): number => {
    if (Number.isSafeInteger(value) && value as number > 0) return value as number;
    throw new FormatError(`must be a whole number of 1 or more, not ${JSON.stringify(value)}`, {
      file,
      place,
    });
  };
  if (defaults.cut === "tiles") {
    const { max_image_size: tile = { longest_edge: 364 }, do_image_splitting: splits } = config;
    return {
      kind: "tiles",
      longestEdge: count("size.longest_edge", edges.longest_edge),
      side: count("max_image_size.longest_edge", OBJECT.accepts(tile) ? tile.longest_edge : tile),
      splits: splits !== false,
    };
  }
  const { patch_size: patch = 14, merge_size: merge = 2, min_pixels, max_pixels } = config;
  return {
    kind: "free",
    least: count("size.shortest_edge", min_pixels ?? edges.shortest_edge),
    most: count("size.longest_edge", max_pixels ?? edges.longest_edge),
    step: count("patch_size", patch) * count("merge_size", merge),
  };
}

/** A short edge below 384 is resized to more, and its middle cut out; from there on both sides are made so. */
function withShare(processor: ImageProcessor, share: number): ImageProcessor {
  const { size, filter } = processor.resize!;
  if (!("shortestEdge" in size)) return processor;
  const side = size.shortestEdge;
  if (side >= UNCUT_SIDE) return { ...processor, resize: { size: square(side), filter } };
  const resize = { size: { shortestEdge: Math.trunc(side / share) }, filter };
  return { ...processor, resize, crop: square(side) };
}

function sides(size: WantedSize): { readonly width: number; readonly height: number } {
  return "shortestEdge" in size ? square(size.shortestEdge) : size;
}

function sizeOf(
  value: unknown,
  { defaults, file, place }: {
    readonly defaults: Defaults;
    readonly file: string;
    readonly place: string;
  },
): WantedSize {
  const side = (of: unknown): number => {
    if (Number.isSafeInteger(of) && of as number > 0) return of as number;
    throw new FormatError(`must be a whole number of 1 or more, not ${JSON.stringify(of)}`, {
      file,
      place,
    });
  };
  if (typeof value === "number") {
    return defaults.bareSize === "square" ? square(side(value)) : { shortestEdge: side(value) };
  }
  if (!OBJECT.accepts(value)) throw new FormatError("must be a size", { file, place });
  const keys = Object.keys(value).sort().join(", ");
  if (keys === "height, width") return { width: side(value.width), height: side(value.height) };
  if (keys === "shortest_edge") return { shortestEdge: side(value.shortest_edge) };
  throw new UnsupportedError(`a size by ${keys || "nothing"}`, {
    file,
    place,
    remedy: 'Known are "height" with "width", and "shortest_edge"',
  });
}
