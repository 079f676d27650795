// `troodon completions`: a script that makes a shell complete commands, flags, their choices and names of models. All
// of it follows from the statements of the commands, so that it cannot fall behind them.

import { cacheFolder } from "../../formats/hub/cache.ts";
import { modelNames } from "../../formats/hub/catalogue.ts";
import { CACHED_MODEL } from "../args.ts";
import { type Command, type CommandEntry, defineCommand } from "../command.ts";

type Commands = Readonly<Record<string, CommandEntry>>;

/** A command as shells need it. */
interface Described {
  readonly name: string;
  readonly summary: string;
  /** Models that it may be given: any, those that were fetched, none. */
  readonly models: "known" | "kept" | "none";
  /** What may stand first, where it is one of some words: `bash|zsh|fish`. */
  readonly words: readonly string[];
  readonly flags: readonly {
    readonly name: string;
    readonly help: string;
    readonly hasValue: boolean;
    readonly choices: readonly string[];
  }[];
}

const SHELLS: Readonly<Record<string, (commands: readonly Described[]) => string>> = {
  bash: bashScript,
  // zsh reads bash's functions.
  zsh: (commands) => `autoload -U +X bashcompinit && bashcompinit\n${bashScript(commands)}`,
  fish: fishScript,
};

/** The command, over the table that it is a row of. */
export function completions(commands: Commands): Command {
  return defineCommand({
    name: "troodon completions",
    summary: "Writes what a shell needs to complete troodon's commands, flags and models.",
    positionals: ["bash|zsh|fish"],
    flags: {},
    examples: [
      ["source <(troodon completions bash)", "for this shell; in ~/.bashrc for all"],
      ["source <(troodon completions zsh)", "the same for zsh"],
      ["troodon completions fish > ~/.config/fish/completions/troodon.fish", "for fish"],
    ],
    notes: [
      "They are for a command called troodon: `alias troodon='deno run -A …/main.ts'`, or an installed one.",
    ],
  }, async ({ terminal }, { positionals: [shell = ""], flags }) => {
    const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
    if (!script) {
      const { suggestion, UsageError } = await import("../args.ts");
      const shells = Object.keys(SHELLS);
      const near = suggestion(shell, shells, { name: "troodon completions" });
      throw new UsageError(`troodon completions takes ${shells.join(", ")}: got "${shell}"${near}`);
    }
    const text = script(await Promise.all(Object.entries(commands).map(describe)));
    terminal.out(flags.json ? JSON.stringify({ shell, script: text }) + "\n" : text);
    return 0;
  });
}

async function describe([name, { summary, load }]: [string, CommandEntry]): Promise<Described> {
  const { line } = await load();
  const flags = Object.entries(line.flags).map(([flag, { type, help, choices = [] }]) => ({
    ...{ name: flag, help, choices },
    hasValue: type !== "boolean",
  }));
  const help = { name: "help", help: "show the page of a command", choices: [], hasValue: false };
  const { positionals = [] } = line;
  const models = positionals.includes(CACHED_MODEL)
    ? "kept"
    : positionals.some((word) => word.includes("MODEL"))
    ? "known"
    : "none";
  const [first = ""] = positionals;
  const words = /^[a-z]+(\|[a-z]+)+$/.test(first) ? first.split("|") : [];
  return { name, summary, models, words, flags: [...flags, help] };
}

/** What writes the names of fetched models, one a line, in any of the shells: each lies beside its model. */
function keptNames(): string {
  return `find ${quoted(cacheFolder())} -maxdepth 2 -name source.txt -exec awk 1 {} + 2>/dev/null`;
}

/** A word that no shell changes. */
function quoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, "'\\$&'")}'`;
}

function bashScript(commands: readonly Described[]): string {
  const lists = { known: `"$names"`, kept: `"$(_troodon_kept)" files=""`, none: `""` };
  const cases = commands.map(({ name, flags, models }) => {
    const words = flags.map((flag) => `--${flag.name}`).join(" ");
    return `    ${name}) flags="${words}" models=${lists[models]} ;;`;
  });
  const choices = commands.flatMap(({ name, flags, words }) => [
    ...words.length > 0 ? [`    "${name} ${name}") words="${words.join(" ")}" ;;`] : [],
    ...flags.filter((flag) => flag.choices.length > 0)
      .map((flag) => `    "${name} --${flag.name}") words="${flag.choices.join(" ")}" ;;`),
  ]);
  const valued = [
    ...new Set(
      commands.flatMap(({ flags }) =>
        flags.filter((flag) => flag.hasValue).map((flag) => `--${flag.name}`)
      ),
    ),
  ];
  return `_troodon_kept() {
  ${keptNames()}
}
_troodon() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}"
  local flags="" models="" words="" files="yes" names="${modelNames().join(" ")}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${
    commands.map(({ name }) => name).join(" ")
  } --help --version" -- "$cur"))
    return
  fi
  case "\${COMP_WORDS[1]} $prev" in
${choices.join("\n")}
  esac
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$cur")); return; fi
  case "\${COMP_WORDS[1]}" in
${cases.join("\n")}
  esac
  case "$prev" in
    ${valued.join("|")}) COMPREPLY=($(compgen -f -- "$cur")); return ;;
  esac
  case "$cur" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W "$models" -- "$cur") $([ -z "$files" ] || compgen -f -- "$cur")) ;;
  esac
}
complete -o filenames -F _troodon troodon
`;
}

function fishScript(commands: readonly Described[]): string {
  const lists = { known: modelNames().join(" "), kept: `(${keptNames()})`, none: "" };
  const first = commands.map(({ name, summary }) =>
    `complete -c troodon -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`
  );
  const rest = commands.flatMap(({ name, flags, models, words }) => {
    const when = `complete -c troodon -n '__fish_seen_subcommand_from ${name}'`;
    return [
      ...words.length > 0 ? [`${when} -f -a ${quoted(words.join(" "))}`] : [],
      ...models === "none"
        ? []
        : [`${when}${models === "kept" ? " -f" : ""} -a ${quoted(lists[models])}`],
      ...flags.map((flag) => {
        const values = flag.choices.length > 0
          ? ` -x -a ${quoted(flag.choices.join(" "))}`
          : flag.hasValue
          ? " -r"
          : "";
        return `${when} -l ${flag.name}${values} -d ${quoted(flag.help)}`;
      }),
    ];
  });
  return `${[...first, ...rest].join("\n")}\n`;
}
