/** The results that are kept with the sources, one file for each suite, and the pages that show them. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Docs from "./docs.ts"
import * as Plot from "./plot.ts"
import type { Result } from "./results.ts"
import { inOneTable } from "./suites/index.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const folder = join(root, "benchmarks", "results")
const pages = ["README.md", "RESULTS.md"].map((name) => join(root, "benchmarks", name))

export const write = (file: string, text: string, say: (line: string) => void): void => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  say(`wrote ${file}`)
}

export const json = (result: Result): string => `${JSON.stringify(result, undefined, 2)}\n`

/** A picture of every case. */
export const draw = ({ cases }: Result, into: string, say: (line: string) => void): void => {
  for (const each of cases) write(join(into, Docs.plotOf(each)), Plot.cpu(each), say)
}

export const keep = (result: Result, say: (line: string) => void): void => {
  write(join(folder, `${result.cases[0]!.suite}.json`), json(result), say)
  if (!inOneTable(result.cases[0]!.suite)) draw(result, join(root, "benchmarks", "charts"), say)
}

/** All kept results: files that have the rounds; older files have none. */
const read = (): ReadonlyArray<Result> =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as Result)
    .filter(({ cases }) => cases.every(({ lines }) => lines.every(({ readings }) => readings !== undefined)))

/** Rewrites the tables of the pages from all kept results. */
export const render = (say: (line: string) => void): void => {
  for (const page of pages) write(page, Docs.render(readFileSync(page, "utf8"), read()), say)
}
