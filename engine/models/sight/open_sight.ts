// From the files of a model that sees to how it looks at pictures: its language model as a file of its own, the tower built
// beside it before any weight is read, and both put together when the device is ready.

import { createLock } from "../../lock.ts";
import type { LoadOptions } from "../../decode/model.ts";
import type { PictureTable, SeenPicture } from "../../decode/pictures/picture_table.ts";
import type { Sight } from "../../decode/pictures/sight.ts";
import { FormatError, SourceError, UnsupportedError } from "../../errors.ts";
import type { Picture } from "../../formats/media/picture.ts";
import type { WeightFile } from "../../formats/source.ts";
import { asObject, readJson } from "../../formats/strict_json.ts";
import { type ImageProcessor, readImageProcessor } from "../../pictures/image_processor.ts";
import { partsOf, type PictureParts } from "../../pictures/picture_parts.ts";
import { colourTables, writePlanes } from "../../pictures/prepare.ts";
import type { DeviceName } from "../../run/backend.ts";
import { openDevice } from "../../run/devices.ts";
import type { Tokenizer } from "../../text/tokenizer.ts";
import { type PictureRules, readModelParts } from "../build.ts";
import { metadataAt } from "../metadata.ts";
import { planGraph } from "../prepare.ts";
import { chooseSpec } from "../specs/mod.ts";
import type { SightSpec } from "./sight_spec.ts";
import { sightSpecOf } from "./specs/mod.ts";
import { textOfPicture } from "./text_marks.ts";
import { createTower, type Planes, type Tower } from "./tower.ts";
import { buildTower, type BuiltTower } from "./tower_build.ts";
import { type SightViews, sightViews } from "./views.ts";

/** Rows of one picture of free size at most, unless the options say: as many as Qwen advises. */
const MOST_ROWS = 1280;

/** A model that sees, as far as its files tell. */
export interface OpenedSight extends SightViews {
  readonly spec: SightSpec;
  /** Config of the whole model. */
  readonly metadata: WeightFile["metadata"];
  /** What its language model is built for. */
  readonly rules: PictureRules;
  readonly processor: ImageProcessor;
}

/** A tower that fits its language model. */
export interface PlannedSight {
  readonly opened: OpenedSight;
  readonly built: BuiltTower;
  /** Rows of one part of a picture at most. */
  readonly mostRows: number;
  /** One sentence each. */
  readonly warnings: readonly string[];
}

/**
 * The language model of a file, and of one that sees what looks at pictures, unless that is not wanted.
 *
 * @throws {SourceError} If the file that says how pictures are prepared is not there.
 * @throws {UnsupportedError} If the config asks for what is not built.
 */
export async function openSight(
  file: WeightFile,
  { pictures = true, mmproj }: Pick<LoadOptions, "pictures" | "mmproj">,
): Promise<{ readonly text: WeightFile; readonly sight?: OpenedSight }> {
  const spec = sightSpecOf(file), views = spec && sightViews(file, spec);
  const text = views?.text ?? file;
  if (!pictures) return { text };
  if (mmproj !== undefined) {
    const { openMmproj } = await import("./mmproj.ts");
    const opened = await openMmproj(mmproj);
    const processor = readImageProcessor(opened.processor, mmproj);
    return { text, sight: { ...opened, ...rulesOf(opened.spec), text, processor } };
  }
  if (!spec) return { text };
  checkExpected(spec, file);
  const processor = await readProcessor(file);
  const { tower } = views!;
  // The file itself is closed by who opened it.
  const own = { ...tower, close: () => {} };
  return {
    text,
    sight: { spec, ...rulesOf(spec), text, tower: own, metadata: file.metadata, processor },
  };
}

function rulesOf({ seesWhole = false, byPlace = false }: SightSpec): Pick<OpenedSight, "rules"> {
  return { rules: { seesWhole, byPlace } };
}

function checkExpected({ tower: { expected = {} } }: SightSpec, file: WeightFile): void {
  for (const [key, allowed] of Object.entries(expected)) {
    const value = metadataAt(file.metadata, key);
    if (value === undefined || allowed === "any" || allowed.includes(value as never)) continue;
    throw new UnsupportedError(
      `is ${JSON.stringify(value)}, and only ${allowed.join(", ")} is built`,
      { file: file.name, place: key },
    );
  }
}

/** What the folder says of preparing pictures. */
async function readProcessor(file: WeightFile): Promise<ImageProcessor> {
  const own = asObject(await readJson(file, "preprocessor_config.json"));
  const shared = asObject(await readJson(file, "processor_config.json"));
  const config = own ?? asObject(shared?.image_processor);
  if (config) return readImageProcessor(config, file.name);
  throw new SourceError("says nothing of how pictures are prepared", {
    file: file.name,
    remedy: "Put preprocessor_config.json beside the weights, or load with pictures: false",
  });
}

/**
 * Builds the tower for a language model.
 *
 * @throws {FormatError} If they do not fit each other. @throws {UnsupportedError} If something of it is not built.
 */
export function planSight(
  opened: OpenedSight,
  { hidden, batch, options }: {
    /** Width of the language model, and rows of its steps. */
    readonly hidden: number;
    readonly batch: number;
    readonly options: Pick<LoadOptions, "pictureRows">;
  },
): PlannedSight {
  const { spec, tower: file, metadata, rules } = opened;
  const { resolved, architecture } = chooseSpec(file);
  const parts = readModelParts(resolved, { stored: file, architecture });
  const built = buildTower({ spec, parts, metadata, hidden });
  const { processor, mostRows } = fitted(opened.processor, { built, options, file: file.name });
  if (rules.seesWhole && mostRows > batch) {
    throw new UnsupportedError(
      `a picture has ${mostRows} rows that see each other, and a step has ${batch}`,
      { file: file.name, remedy: `Load it with batch: ${mostRows} or more` },
    );
  }
  const { unused } = built, shown = unused.slice(0, 3).join(", ");
  return {
    opened: { ...opened, processor },
    ...{ built, mostRows },
    warnings: unused.length === 0 ? [] : [
      `${unused.length} tensors for pictures are not used: ${shown}${
        unused.length > 3 ? ", ..." : ""
      }`,
    ],
  };
}

/** How many rows a part of a picture becomes, and pictures of free size kept within that. */
function fitted(
  processor: ImageProcessor,
  { built: { grid, side, isFixed }, options: { pictureRows = MOST_ROWS }, file }: {
    readonly built: BuiltTower;
    readonly options: Pick<LoadOptions, "pictureRows">;
    readonly file: string;
  },
): { readonly processor: ImageProcessor; readonly mostRows: number } {
  const rule = processor.cut?.rule;
  if (rule?.kind === "free" && !isFixed) {
    const mostRows = Math.min(pictureRows, Math.floor(rule.most / rule.step ** 2));
    const most = mostRows * rule.step ** 2;
    const cut = { ...processor.cut!, rule: { ...rule, most, least: Math.min(rule.least, most) } };
    return { processor: { ...processor, cut }, mostRows };
  }
  const { width, height } = sizeOf(processor);
  const wanted = [grid.columns * grid.patch, grid.rows * grid.patch];
  if (
    Math.floor(width / grid.patch) * grid.patch !== wanted[0] ||
    Math.floor(height / grid.patch) * grid.patch !== wanted[1]
  ) {
    throw new UnsupportedError(
      `prepares pictures of ${width} × ${height} pixels, and its tower takes ${wanted.join(" × ")}`,
      { file, place: "preprocessor_config.json" },
    );
  }
  return { processor, mostRows: grid.rows * grid.columns / side ** 2 };
}

/** The size that a processor gives to what a tower is shown. */
function sizeOf({ cut, crop, resize }: ImageProcessor): { width: number; height: number } {
  if (cut?.rule.kind === "tiles") return { width: cut.rule.side, height: cut.rule.side };
  const size = crop ?? resize?.size;
  return size && "width" in size ? size : { width: 0, height: 0 };
}

/** A tower in memory, and the bytes that it takes. */
export interface LoadedTower extends Tower {
  readonly bytes: number;
}

/** Loads the tower, onto the kind of device that its language model is on. */
export async function loadTower(
  { built, mostRows }: PlannedSight,
  { device, options }: { readonly device: DeviceName; readonly options: LoadOptions },
): Promise<LoadedTower> {
  const { threads, gpu, excludeKernels, memoryBytes, cacheDir, selfTest, signal } = options;
  const { priority, maxSubmitMs } = options;
  const own = await openDevice(device, {
    ...{ threads, gpu, excludeKernels, memoryBytes, cacheDir, selfTest, priority, maxSubmitMs },
  });
  const planned = planGraph(built.graph, {
    ...{ kernels: own, precision: options.precision ?? "fast", roundsWeights: true },
    symbols: ({ inputs }) => ({
      N: mostRows,
      ...inputs.some(({ name }) => name === "kept") &&
        { M: built.grid.leading + mostRows * built.side ** 2 },
    }),
  });
  const prepared = await own.backend.prepare(planned, { slots: 1, ...signal && { signal } });
  const { weights, arena, other } = prepared.memory;
  return { ...createTower(prepared, built), bytes: weights + arena + other };
}

/**
 * Marks around rows are tokens of the language model.
 *
 * @throws {FormatError} If it has none of them.
 */
export function checkMarks({ opened: { spec, tower } }: PlannedSight, tokenizer: Tokenizer): void {
  const { placeholder, whole } = spec.marks;
  if (whole === "{rows}" || tokenizer.idOf(placeholder) !== undefined) return;
  throw new FormatError(
    `is for language models with a token ${placeholder}, and this one has none: they are of different models`,
    { file: tower.name, place: "pictures" },
  );
}

/** What looking needs besides. */
export interface SightParts {
  readonly tower: LoadedTower;
  readonly table: PictureTable;
  readonly tokenizer: Tokenizer;
}

/** How a model looks at pictures, its tower being loaded. */
export function createSight(
  { opened: { spec, rules, processor } }: PlannedSight,
  { tower, table, tokenizer }: SightParts,
): Sight {
  const row = rowTokenOf(tokenizer, spec.marks.row), lock = createLock();
  return {
    ...{ table, ...rules, ...row, placeholder: spec.marks.placeholder, bytes: tower.bytes },
    textOf: (picture) => textOfPicture(spec, { ...picture, row: row.rowToken }),
    async look(picture, signal) {
      const key = await digestOf(picture);
      using _turn = await lock.acquire(signal);
      return table.find(key) ?? await see(tower, { picture, key, processor, rules, signal });
    },
    dispose: () => tower.dispose(),
  };
}

/** The token that stands for a row: the spec's, or where a vocabulary has none, one that no text has. */
function rowTokenOf(tokenizer: Tokenizer, stated: string): Pick<Sight, "rowToken" | "rowId"> {
  const rowId = tokenizer.idOf(stated) ?? tokenizer.padId ?? tokenizer.unkId ?? 0;
  return { rowToken: tokenizer.tokenText(rowId), rowId };
}

async function digestOf({ width, height, channels = 3, data }: Picture): Promise<string> {
  const head = Uint32Array.of(width, height, channels);
  const bytes = new Uint8Array(12 + data.length);
  bytes.set(new Uint8Array(head.buffer));
  bytes.set(data, 12);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
}

async function see(
  tower: Tower,
  { picture, key, processor, rules, signal }: {
    readonly picture: Picture;
    readonly key: string;
    readonly processor: ImageProcessor;
    readonly rules: PictureRules;
    readonly signal: AbortSignal | undefined;
  },
): Promise<SeenPicture> {
  const { parts, tiles } = partsOf(processor, picture);
  const made: { readonly rows: Float32Array; readonly grid: SeenPicture["grid"] }[] = [];
  for (const planes of planesOf(processor, parts)) {
    signal?.throwIfAborted();
    made.push(await tower.run(planes, signal));
  }
  const length = made.reduce((sum, { rows }) => sum + rows.length, 0);
  const values = new Float32Array(length);
  let at = 0;
  for (const { rows } of made) {
    values.set(rows, at);
    at += rows.length;
  }
  const count = made.reduce((sum, { grid }) => sum + grid!.rows * grid!.columns, 0);
  return { key, values, count, ...rules.byPlace && { grid: made[0]!.grid }, ...tiles && { tiles } };
}

/** Parts as numbers, one at a time. */
export function* planesOf(
  processor: ImageProcessor,
  parts: PictureParts["parts"],
): Generator<Planes> {
  const tables = colourTables(processor);
  for (const part of parts) {
    const { width, height } = part, values = new Float32Array(3 * width * height);
    writePlanes(part, { tables, target: values });
    yield { width, height, values };
  }
}
