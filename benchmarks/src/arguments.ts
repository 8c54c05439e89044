/** The command line of `npm run bench`. */
import { parseArgs } from "node:util"
import type { Suite } from "./Suite.ts"
import { suites as known } from "./suites/index.ts"

export interface Arguments {
  readonly suites: ReadonlyArray<Suite>
  /** The file for the result as JSON. */
  readonly json: string | undefined
  /** The folder for the pictures. */
  readonly plots: string | undefined
  /** Whether every suite's result is kept with the sources, drawn, and shown on the page of results. */
  readonly docs: boolean
  /** Whether only that page is rewritten, from the kept results. */
  readonly render: boolean
  /** Only cases whose name contains this. */
  readonly only: string
  readonly quick: boolean
  /** `undefined`: each suite's default. */
  readonly rounds: number | undefined
}

const longest = Math.max(...known.map(({ name }) => name.length))

const help = `npm run bench -- [suite ...] [options]

Compares Requeue with raw clients and other libraries, one process for each contender and round, in turn. Every case
measures its baseline twice. While this control is off by more than 5 %, there are more rounds, up to three times as many;
what it is off for then does not count, because the machine was not quiet. What a suite must show stands in src/goals.ts, and is judged at the end.

Suites; without a name, those with a star:
${known.map(({ byDefault, name, summary }) => `  ${byDefault ? "*" : " "} ${name.padEnd(longest)}  ${summary}`).join("\n")}

Options
  --docs         keeps each suite's result in benchmarks/results, draws it in benchmarks/charts, and rewrites its tables and
                 that of the goals in benchmarks/README.md: suite by suite, or all of them
  --render       measures nothing: only rewrites the tables of the pages in benchmarks/ from what is kept
  --case TEXT    only cases with this text in their name; not with --docs, which keeps whole suites
  --json FILE    keeps the result, with the environment and the command that made it
  --plots DIR    draws every case as SVG
  --rounds N     just so many rounds of every contender; default: what the suite says, 5 mostly, and more while the
                 control is off
  --quick        a tenth of the messages and 2 rounds: to see that it runs, not what it says
  --help         this

Exit codes: 0 done, 1 failed, or a limit reached (guard), 2 misused.`

export const parse = (
  args: ReadonlyArray<string>,
  toPath: (file: string) => string
): Arguments | { readonly help: string } | { readonly misuse: string } => {
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { type: "boolean", default: false },
        docs: { type: "boolean", default: false },
        render: { type: "boolean", default: false },
        case: { type: "string", default: "" },
        json: { type: "string" },
        plots: { type: "string" },
        quick: { type: "boolean", default: false },
        rounds: { type: "string" }
      }
    })
    if (values.help) return { help }
    const strange = positionals.find((name) => !known.some((suite) => suite.name === name))
    if (strange !== undefined) return { misuse: `there is no suite ${strange}; see --help` }
    if (values.docs && (values.case !== "" || values.quick)) {
      return { misuse: "--docs keeps whole suites: not with --case or --quick" }
    }
    const rounds = values.rounds === undefined ? undefined : Number(values.rounds)
    if (rounds !== undefined && !(Number.isSafeInteger(rounds) && rounds >= 1)) {
      return { misuse: `--rounds must be a whole number >= 1, got ${values.rounds}` }
    }
    return {
      suites: known.filter(({ byDefault, name }) =>
        positionals.length === 0 ? byDefault : positionals.includes(name)
      ),
      json: values.json === undefined ? undefined : toPath(values.json),
      plots: values.plots === undefined ? undefined : toPath(values.plots),
      docs: values.docs,
      render: values.render,
      only: values.case,
      quick: values.quick,
      rounds
    }
  } catch (error) {
    return { misuse: `${(error as Error).message}; see --help` }
  }
}
