// Generated AssemblyScript: text made in memory while building, imported by the sources as
// "./generated/<name>". Use a generator where kernels differ in data only; write plain files otherwise.

import { codeTablesModule } from "./code_tables.ts";
import { columnsModule } from "./columns.ts";
import { convTilesModule } from "./conv_tiles.ts";
import { depthwiseTilesModule } from "./depthwise_tiles.ts";
import { dotTilesModule } from "./dot_tiles.ts";
import { eightsInt7Module } from "./eights_int7.ts";
import { elementwiseRuns } from "./elementwise_runs.ts";
import { floatTilesModule } from "./float_tiles.ts";
import { gemvModule } from "./gemv.ts";
import { gemvEightsModule } from "./gemv_eights.ts";
import { gemvJoinedModule } from "./gemv_joined.ts";
import { gemvJoinedOneModule } from "./gemv_joined_one.ts";
import { gemvFloatModule } from "./gemv_float.ts";
import { gemvUnpackedModule } from "./gemv_unpacked.ts";
import { integerTilesModule } from "./integer_tiles.ts";
import { layoutsModule } from "./layouts.ts";
import { attentionBlocks } from "./attention/blocks.ts";
import { attentionHalf } from "./attention/half.ts";
import { attentionJoined } from "./attention/joined.ts";
import { kernelTable, opcodeConstants } from "./opcodes.ts";
import { peakModule } from "./peak.ts";
import { tilesModule } from "./tiles.ts";
import { tilesInt7Module } from "./tiles_int7.ts";
import { tilesQ16Module } from "./tiles_q16.ts";
import { typedFunctions } from "./typed_functions.ts";
import { unpackModule } from "./unpack.ts";

/** Source text by module name. */
export const GENERATED: Readonly<Record<string, () => string>> = {
  attention_blocks: attentionBlocks,
  attention_half: attentionHalf,
  attention_joined: attentionJoined,
  conv_tiles: convTilesModule,
  depthwise_tiles: depthwiseTilesModule,
  dot_tiles: dotTilesModule,
  elementwise_runs: elementwiseRuns,
  peak: peakModule,
  opcodes: opcodeConstants,
  kernels: kernelTable,
  layouts: layoutsModule,
  code_tables: codeTablesModule,
  columns: columnsModule,
  typed_functions: typedFunctions,
  unpack: unpackModule,
  float_tiles: floatTilesModule,
  integer_tiles: integerTilesModule,
  gemv_float: gemvFloatModule,
  gemv_dot: () => gemvModule("dot"),
  gemv_pair: () => gemvModule("pair"),
  gemv_plain: () => gemvModule("plain"),
  gemv_eights: gemvEightsModule,
  gemv_joined_dot: () => gemvJoinedModule("dot"),
  gemv_joined_pair: () => gemvJoinedModule("pair"),
  gemv_joined_one_dot: () => gemvJoinedOneModule("dot"),
  gemv_joined_one_pair: () => gemvJoinedOneModule("pair"),
  gemv_unpacked_dot: () => gemvUnpackedModule("dot"),
  gemv_unpacked_pair: () => gemvUnpackedModule("pair"),
  gemv_unpacked_plain: () => gemvUnpackedModule("plain"),
  tiles_dot: () => tilesModule("dot"),
  tiles_pair: () => tilesModule("pair"),
  tiles_joined_dot: () => tilesModule("dot", true),
  tiles_joined_pair: () => tilesModule("pair", true),
  tiles_plain: () => tilesModule("plain"),
  tiles_q16: tilesQ16Module,
  eights_int7: eightsInt7Module,
  tiles_int7_dot: () => tilesInt7Module("dot"),
  tiles_int7_pair: () => tilesInt7Module("pair"),
  tiles_int7_plain: () => tilesInt7Module("plain"),
};
